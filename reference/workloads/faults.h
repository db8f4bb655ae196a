// SPDX-License-Identifier: Apache-2.0
// What a scenario may plant. Strengths left out in the file have the defaults written here; those of hosts (jitter to pageable_copies) are for one
// micro-step, a step of M micro-steps has M times as much.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankscope::reference {

struct Straggler {
    int rank = 0;
    double factor = 1.5;
};

struct Kill {
    int rank = 0;
    int step = 0;
};

/// The rank's host stands still for `ms` in a share of the steps, each time on another rank than before.
struct Jitter {
    double share = 0.2;
    double ms = 100;
};

/// From the start of each step kernels are cut into tiny pieces until `kernels` were launched; each piece costs the host `hostUs` more.
struct LaunchBound {
    int kernels = 2048;
    double hostUs = 8;
};

/// A value is read back `perStep` times a step, and each time the host works `hostMs` before it launches anything else.
struct SyncEveryStep {
    int perStep = 8;
    double hostMs = 2;
};

/// The next batch takes `ms` longer to come.
struct SlowInput {
    double ms = 30;
};

/// A block is given back to the driver and taken again `perStep` times a step. Each of the two calls takes `us` on virtual GPUs; real drivers take
/// their own time.
struct AllocChurn {
    int perStep = 16;
    double us = 500;
};

/// `mb` MiB of input and offloaded states come from pageable memory in each step, in `perStep` copies.
struct PageableCopies {
    int perStep = 4;
    double mb = 256;
};

struct Faults {
    std::vector<std::string> kinds;  ///< in file order, as written
    std::vector<std::string> virtualOnly;  ///< those that only virtual GPUs can plant
    std::vector<Straggler> stragglers;
    std::optional<double> smallBucketsKb;
    bool singleBucket = false;
    bool noOverlap = false;
    bool noPrefetch = false;
    std::optional<Kill> kill;
    std::optional<Jitter> jitter;
    std::optional<LaunchBound> launchBound;
    std::optional<SyncEveryStep> syncEveryStep;
    std::optional<SlowInput> slowInput;
    std::optional<AllocChurn> allocChurn;
    std::optional<PageableCopies> pageableCopies;
};

}  // namespace rankscope::reference

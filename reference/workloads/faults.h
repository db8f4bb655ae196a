// SPDX-License-Identifier: Apache-2.0
// What a scenario may plant. Strengths left out in the file have the defaults written here; those of hosts (jitter to
// pageable_copies) are for one micro-step, a step of M micro-steps has M times as much.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankscope::reference {

struct Straggler {
    int rank = 0;
    double factor = 1.5;
    int fromStep = 0;   ///< the first step in which it is slow
    int overSteps = 1;  ///< the factor is reached so, in equal parts

    double factorIn(int step) const;
};

/// Kernels whose names begin so are slow from a step on, in the same grid.
struct SlowKernel {
    std::string kernel = "attention";
    std::optional<int> rank;  ///< none: on all of them
    double factor = 1.5;
    int fromStep = 0;
};

/// Faults that end a job come inside a step, after its first forward pass.
struct Kill {
    int rank = 0;
    int step = 0;
};

/// An allocation beyond the device's memory.
struct OutOfMemory {
    int rank = 0;
    int step = 0;
};

/// Issues nothing more from `step` on: it hangs, sleeps in its data loader, or is stopped by SIGSTOP.
struct MissingRank {
    enum class Where { step, loader, stopped } where = Where::step;
    int rank = 0;
    int step = 0;
};

/// Ends by an error of its own, as an exception that nobody catches ends Python: exit status 1.
struct Exception {
    int rank = 0;
    int step = 0;
};

/// Calls collectives of two communicators in the order opposite to its peers'.
struct OppositeOrder {
    int rank = 0;
    int step = 0;
};

/// All ranks end by the signal that a terminal (Ctrl-C) or a scheduler sends.
struct EndedByUser {
    int signal = 0;
    int step = 0;
};

/// Asks for another collective than the others: half the size, another type, another operation, two in exchanged
/// order, or another root of a broadcast that all of them add.
struct Mismatch {
    enum class What { size, dtype, op, order, root } what = What::size;
    int rank = 0;
    int step = 0;
};

/// The rank's host stands still for `ms` in a share of the steps, each time on another rank than before.
struct Jitter {
    double share = 0.2;
    double ms = 100;
};

/// Replicas have unequal amounts of work, by other sequence lengths: the heaviest `factor` times the mean, the others
/// spread evenly below it. With `ranks` given, the replicas of those have `factor` times the mean, and the others share
/// the rest.
struct UnevenWork {
    double factor = 1.5;
    std::vector<int> ranks;
};

/// A pipeline stage has `factor` times the work of the others.
struct StageImbalance {
    int stage = 0;
    double factor = 1.5;
};

/// NCCL_ALGO and NCCL_PROTO as a user would set them; empty: not set.
struct WrongAlgo {
    std::string algo;
    std::string proto;
};

/// Communication is issued this much later than compute has come to where it was due; without `ms` by a share of what
/// it should hide under.
struct LateLaunch {
    std::optional<double> ms;
};

/// From the start of each step kernels are cut into tiny pieces until `kernels` were launched; each piece costs the
/// host `hostUs` more.
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

/// A block is given back to the driver and taken again `perStep` times a step. Each of the two calls takes `us` on
/// virtual GPUs; real drivers take their own time.
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
    std::vector<std::string> kinds;        ///< in file order, as written
    std::vector<std::string> virtualOnly;  ///< those that only virtual GPUs can plant
    std::vector<Straggler> stragglers;
    std::vector<SlowKernel> slowKernels;
    std::optional<double> smallBucketsKb;
    bool singleBucket = false;
    bool noOverlap = false;
    bool noPrefetch = false;
    bool noNoSync = false;
    bool fp32Grads = false;
    bool tpAcrossNodes = false;
    std::optional<WrongAlgo> wrongAlgo;
    std::optional<UnevenWork> unevenWork;
    std::vector<StageImbalance> stageImbalances;
    std::optional<Kill> kill;
    std::optional<OutOfMemory> oom;
    std::optional<MissingRank> missingRank;
    std::optional<Mismatch> mismatch;
    std::optional<Exception> exception;
    std::optional<OppositeOrder> oppositeOrder;
    std::optional<EndedByUser> endedByUser;
    double watchdogSeconds = 30;    ///< how long a rank waits for a collective
    int watchedFromStep = 1000000;  ///< the first step with a failure that leaves the others waiting
    std::optional<Jitter> jitter;
    std::optional<LateLaunch> lateLaunch;
    std::optional<LaunchBound> launchBound;
    std::optional<SyncEveryStep> syncEveryStep;
    std::optional<SlowInput> slowInput;
    std::optional<AllocChurn> allocChurn;
    std::optional<PageableCopies> pageableCopies;
};

}  // namespace rankscope::reference

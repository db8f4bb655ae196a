// SPDX-License-Identifier: Apache-2.0
// The buckets of gradients (and of ZeRO's updated parameters) as a task graph has them: who sent what, and behind which
// kernel.
#pragma once

#include <string>
#include <vector>

#include "analyzer/edits/graph_view.h"
#include "analyzer/job/analysis.h"

namespace rankscope::edits {

/// One rank's side of a round.
struct RoundMember {
    int rank = 0;
    std::vector<TaskId> arrivals, transfers,
        launches;  // by bucket; launches: kNoTask where the call is unknown
    std::vector<int64_t>
        ready;  // by bucket: index into ComputeLane::kernels of the last one that it waits for; never falling
};

/// One backward pass worth of buckets.
struct GradientRound {
    int64_t communicator = 0;
    store::Op op = store::Op::unknown;
    int step = -1;
    std::vector<uint32_t> exchanges;   // by bucket, in the order they are sent
    std::vector<double> bytes;         // by bucket
    std::vector<RoundMember> members;  // by rank

    /// Cumulative sizes of the buckets.
    std::vector<double> ends() const;
    double totalBytes() const { return ends().back(); }
    /// Several buckets, all of them behind the same kernel: they are sent when the pass is over.
    bool late() const;
};

/// All rounds, by communicator, operation and order. Collectives that carry no gradients by their role, and flags
/// beside them, are left out. Throws EditError where members of a reduction are missing.
std::vector<GradientRound> gradientRounds(const TaskGraph& graph, const Analysis& analysis, const LaunchIndex& index);

}  // namespace rankscope::edits

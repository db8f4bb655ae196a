// SPDX-License-Identifier: Apache-2.0
// Plays phase 1: one rank's part of the task graph, from its events while they are in memory.
#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/facts/trace_facts.h"
#include "analyzer/replay/graph_draft.h"
#include "analyzer/replay/replicas.h"

namespace rankscope::replay {

/// Says what of a job is replayed: which steps, by number, and of which replicas.
struct ReplayWindow {
    int first = INT_MIN;
    int last = INT_MAX;
    ReplayedReplicas replicas = {};
    bool whole() const { return first == INT_MIN; }  // all steps
    bool holds(int rank) const { return !std::ranges::binary_search(replicas.leftOut, rank); }
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(ReplayWindow& value, const Visit& visit) {
    auto& [first, last, replicas] = value;
    visit(first, last, replicas.leftOut, replicas.of, replicas.replayed, replicas.lateByOthersNs);
}

/// How much of a job is replayed.
struct ReplayLimits {
    /// Of a larger job replicas are left out, down to so many (replicas.h): 1,024 ranks of ten steps are then analysed
    /// in 1 MB a rank, and 256 in two thirds of the time that all of their 4.3 million tasks take, and half the memory.
    size_t enoughTasks = 1'500'000;
    /// Of a job that is not too large as a whole, replicas are left out where no more than this share of them is kept:
    /// for less gain nobody should miss ranks that changes may name. A judgement.
    static constexpr double kMostKept = 0.5;
    /// More than this are not held: while savings are replayed the process has some 290 bytes a task with one play at a
    /// time, and 380 with two (256 ranks, 14 steps, 5.6 million tasks: 1.5 and 2.0 GiB). Where there are no replicas to
    /// leave out, steps are: the last ones are less to go by. What repairs save was told from the last two steps of a
    /// pipeline of 1,024 ranks as 28 % of the step, and is 42 %.
    size_t mostTasks = 6'000'000;
};

/// Returns everything, or as many of the last steps as fit into `mostTasks`, two at least.
ReplayWindow replayWindow(store::TraceReader& trace, const facts::TraceFacts& facts,
                          size_t mostTasks = ReplayLimits().mostTasks);
/// The same, or all steps of some replicas, where all of them come to more than `enoughTasks`.
ReplayWindow replayWindowOfReplicas(store::TraceReader& trace, const facts::TraceFacts& facts,
                                    const ReplayLimits& limits);

/// Describes an NCCL kernel: phase 2 ties it to the other members.
struct CommKernel {
    int64_t kernelId = 0;
    int64_t communicatorId = 0;
    int64_t startNs = 0;  // recorded: durations of transfers come from them, nothing else
    int64_t endNs = 0;
    TaskId arrival = kNoTask;
    TaskId transfer = kNoTask;
};

/// Counts edges of a rank that are not as recorded.
struct EdgeCounts {
    int64_t inferredWaits = 0;  // between streams, from who ended when who began: no event rows, or inside a CUDA graph
    int64_t inferredBlocking = 0;  // a call that took long and returned when work of the device ended
    int64_t contradicted = 0;      // the times say that it was not waited for: left out

    EdgeCounts& operator+=(const EdgeCounts& other);
};

struct RankTasks {
    int rank = 0;
    std::string problem;  // why there is no replay of this rank; empty: there is
    GraphDraft draft;
    // TaskInfo::detail of its kernels leads here; phase 2 numbers them anew over all ranks.
    std::vector<facts::KernelKey> kernelKeys;
    std::vector<CommKernel> comms;  // by kernelId
    EdgeCounts counts;
};

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(RankTasks& value, const Visit& visit) {
    auto& [rank, problem, draft, kernelKeys, comms, counts] = value;
    visit(rank, problem, draft, kernelKeys, comms, counts);
}

/// Plays the steps in `window`; of a rank that it does not hold, nothing.
RankTasks rankTasks(const facts::RankEvents& events, const facts::TraceFacts& facts, const ReplayWindow& window = {});

}  // namespace rankscope::replay

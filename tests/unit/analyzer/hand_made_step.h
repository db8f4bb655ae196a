// SPDX-License-Identifier: Apache-2.0
// Steps of small jobs, made by hand. Times are in ms here, a call of the host takes none.
#pragma once

#include <array>
#include <vector>

#include "analyzer/replay/simulate.h"
#include "analyzer/replay/what_if.h"
#include "tests/unit/analyzer/hand_made_graph.h"

namespace rankscope::analyzer {

/// A rank with a host thread, a compute stream and a communication stream.
struct Rank {
    Rank(GraphDraft& of, int number)
        : draft(of),
          rank(number),
          host(of.addLane({number, true, 3 * number + 1})),
          compute(of.addLane({number, false, 3 * number + 2})),
          network(of.addLane({number, false, 3 * number + 3})) {
        mark(false);
    }

    TaskId call() { return draft.addTask(on(host, TaskKind::host), 0); }
    TaskId kernel(uint32_t key, double ms, TaskId after = kNoTask) {
        const TaskId launch = call();
        const TaskId task = draft.addTask(on(compute, TaskKind::kernel, key), static_cast<int64_t>(ms * kMs));
        draft.addEdge(task, launch, WaitKind::launch, 0, true);
        if (after != kNoTask) draft.addEdge(task, after, WaitKind::event);
        return task;
    }
    /// An NCCL kernel that waits for `after`.
    ExchangeMember communicate(double ms, TaskId after) {
        const TaskId launch = call();
        const TaskId arrival = draft.addTask(on(network, TaskKind::arrival), 0);
        draft.addEdge(arrival, launch, WaitKind::launch, 0, true);
        if (after != kNoTask) draft.addEdge(arrival, after, WaitKind::event);
        return {rank, arrival, draft.addTask(on(network, TaskKind::transfer), static_cast<int64_t>(ms * kMs))};
    }
    void mark(bool closes) {
        const TaskId at = call();
        const TaskId task = draft.addTask(on(kNoLane, TaskKind::stepMark), 0);
        draft.addEdge(task, at, WaitKind::mark);
        for (uint32_t lane : {compute, network})
            if (draft.last(lane) != kNoTask) draft.addEdge(task, draft.last(lane), WaitKind::mark);
        draft.addMark({rank, 0, closes, task});
    }

    GraphDraft& draft;
    int rank;
    uint32_t host, compute, network;
};

inline double stepMs(const TaskGraph& graph) {
    return static_cast<double>(stepTimes(graph, simulate(graph)).front().durNs) / kMs;
}

inline double stepMsWith(const Edit& edit, TaskGraph graph, const Analysis& analysis, double* tokens = nullptr) {
    EditEffect effect;
    edit.apply(graph, analysis, effect);
    if (tokens != nullptr) *tokens = effect.tokens;
    return stepMs(graph);
}

inline Analysis analysisOf(store::Op op, CommRole role) {
    Analysis analysis;
    Communicator communicator;
    communicator.id = kGroup;
    communicator.size = 2;
    communicator.ranks = {0, 1};
    analysis.facts.communicators[kGroup] = communicator;
    analysis.layout.roles[kGroup] = role;
    analysis.layout.uses[kGroup][op] = {role, 1};
    return analysis;
}

/// An embedding of 0.5 ms, forward 1.5 ms, four kernels of backward 1 ms each with 8, 8, 8 and 32 MiB of gradients,
/// optimizer 1 ms. A transfer takes 1 ms and 0.05 ms per MiB.
inline TaskGraph ddpStep(bool late, std::vector<int64_t> bucketMebi = {8, 8, 8, 32}) {
    GraphDraft draft;
    std::vector<Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::array<TaskId, 4>> backward(2);
    std::vector<std::vector<ExchangeMember>> buckets(bucketMebi.size());
    const auto send = [&](size_t bucket, size_t rank, TaskId after) {
        buckets[bucket].push_back(ranks[rank].communicate(1 + 0.05 * static_cast<double>(bucketMebi[bucket]), after));
    };
    for (size_t r = 0; r < 2; ++r) {
        ranks[r].kernel(4, 0.5);
        for (int layer = 0; layer < 3; ++layer) ranks[r].kernel(0, 0.5);
        for (size_t k = 0; k < 4; ++k) {
            backward[r][k] = ranks[r].kernel(k < 3 ? 1 : 2, 1);
            if (!late) send(k, r, backward[r][k]);
        }
        for (size_t k = 0; late && k < bucketMebi.size(); ++k) send(k, r, backward[r][3]);
        ranks[r].kernel(3, 1, buckets.back()[r].transfer);
        ranks[r].mark(true);
    }
    for (size_t b = 0; b < buckets.size(); ++b) joinAll(draft, store::Op::allReduce, bucketMebi[b] * kMebi, buckets[b]);
    return *std::move(draft).seal();
}

/// Changes one after the other, as `rankscope whatif` makes them.
inline double stepMsAfter(const std::vector<const char*>& changes, const TaskGraph& graph, const Analysis& recorded) {
    Analysis analysis = recorded;
    analysis.replay.steps = {0};
    ChangedJob job{graph, {}, {}};
    for (const char* text : changes) change(job, *parseEdit(text), analysis);
    return stepMs(job.graph);
}

}  // namespace rankscope::analyzer

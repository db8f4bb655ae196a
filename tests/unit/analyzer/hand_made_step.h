// SPDX-License-Identifier: Apache-2.0
// Steps of small jobs, made by hand. Times are in ms here, a call of the host takes none.
#pragma once

#include <array>
#include <vector>

#include "analyzer/edits/what_if.h"
#include "analyzer/replay/simulate.h"
#include "tests/unit/analyzer/hand_made_graph.h"

namespace rankscope::test {

/// A rank with a host thread, a compute stream and a communication stream.
struct Rank {
    Rank(replay::GraphDraft& of, int number)
        : draft(of),
          rank(number),
          host(of.addLane({number, true, 3 * number + 1})),
          compute(of.addLane({number, false, 3 * number + 2})),
          network(of.addLane({number, false, 3 * number + 3})) {
        mark(false);
    }

    replay::TaskInfo ofStep(uint32_t lane, replay::TaskKind kind, uint32_t key = 0) const {
        replay::TaskInfo info = on(lane, kind, key);
        info.step = step;
        return info;
    }
    replay::TaskId call() { return draft.addTask(ofStep(host, replay::TaskKind::host), 0); }
    replay::TaskId kernel(uint32_t key, double ms, replay::TaskId after = replay::kNoTask) {
        const replay::TaskId launch = call();
        const replay::TaskId task =
            draft.addTask(ofStep(compute, replay::TaskKind::kernel, key), static_cast<int64_t>(ms * kMs));
        draft.addEdge(task, launch, replay::WaitKind::launch, 0, true);
        if (after != replay::kNoTask) draft.addEdge(task, after, replay::WaitKind::event);
        return task;
    }
    /// An NCCL kernel that waits for `after`.
    replay::ExchangeMember communicate(double ms, replay::TaskId after) {
        const replay::TaskId launch = call();
        const replay::TaskId arrival = draft.addTask(ofStep(network, replay::TaskKind::arrival), 0);
        draft.addEdge(arrival, launch, replay::WaitKind::launch, 0, true);
        if (after != replay::kNoTask) draft.addEdge(arrival, after, replay::WaitKind::event);
        return {rank, arrival,
                draft.addTask(ofStep(network, replay::TaskKind::transfer), static_cast<int64_t>(ms * kMs))};
    }
    void mark(bool closes) {
        const replay::TaskId at = call();
        const replay::TaskId task = draft.addTask(ofStep(replay::kNoLane, replay::TaskKind::stepMark), 0);
        draft.addEdge(task, at, replay::WaitKind::mark);
        for (uint32_t lane : {compute, network})
            if (draft.last(lane) != replay::kNoTask) draft.addEdge(task, draft.last(lane), replay::WaitKind::mark);
        draft.addMark({rank, step, closes, task});
    }

    replay::GraphDraft& draft;
    int rank;
    int step = 0;
    uint32_t host, compute, network;
};

inline double stepMs(const replay::TaskGraph& graph) {
    return static_cast<double>(replay::stepTimes(graph, replay::simulate(graph)).front().durNs) / kMs;
}

inline double stepMsWith(const edits::Edit& edit, replay::TaskGraph graph, const job::Analysis& analysis,
                         double* tokens = nullptr) {
    edits::EditEffect effect;
    edit.apply(graph, analysis, effect);
    if (tokens != nullptr) *tokens = effect.tokens;
    return stepMs(graph);
}

inline job::Analysis analysisOf(store::Op op, facts::CommRole role) {
    job::Analysis analysis;
    facts::Communicator communicator;
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
inline replay::TaskGraph ddpStep(bool late, std::vector<int64_t> bucketMebi = {8, 8, 8, 32}) {
    replay::GraphDraft draft;
    std::vector<Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::array<replay::TaskId, 4>> backward(2);
    std::vector<std::vector<replay::ExchangeMember>> buckets(bucketMebi.size());
    const auto send = [&](size_t bucket, size_t rank, replay::TaskId after) {
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
inline double stepMsAfter(const std::vector<const char*>& changes, const replay::TaskGraph& graph,
                          const job::Analysis& recorded) {
    job::Analysis analysis = recorded;
    analysis.replay.steps = {0};
    edits::ChangedJob job{graph, {}, {}};
    for (const char* text : changes) edits::change(job, *edits::parseEdit(text), analysis);
    return stepMs(job.graph);
}

}  // namespace rankscope::test

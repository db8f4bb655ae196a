// SPDX-License-Identifier: Apache-2.0
// Edits that move work, on graphs small enough to be played by hand. Times are in ms here, a call of the host takes none.
#include <gtest/gtest.h>

#include <array>

#include "analyzer/replay/edits/buckets.h"
#include "analyzer/replay/edits/layers.h"
#include "analyzer/replay/edits/micro_batches.h"
#include "analyzer/replay/edits/place.h"
#include "analyzer/replay/edits/pipeline_plan.h"
#include "analyzer/replay/edits/replicas.h"
#include "analyzer/replay/edits/sharded.h"
#include "analyzer/replay/what_if.h"
#include "analyzer/replay/simulate.h"
#include "tests/unit/analyzer/hand_made_graph.h"

namespace rankscope::analyzer {
namespace {

/// A rank with a host thread, a compute stream and a communication stream.
struct Rank {
    Rank(GraphDraft& of, int number)
        : draft(of), rank(number), host(of.addLane({number, true, 3 * number + 1})), compute(of.addLane({number, false, 3 * number + 2})),
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

double stepMs(const TaskGraph& graph) { return static_cast<double>(stepTimes(graph, simulate(graph)).front().durNs) / kMs; }

double stepMsWith(const Edit& edit, TaskGraph graph, const Analysis& analysis, double* tokens = nullptr) {
    EditEffect effect;
    edit.apply(graph, analysis, effect);
    if (tokens != nullptr) *tokens = effect.tokens;
    return stepMs(graph);
}

Analysis analysisOf(store::Op op, CommRole role) {
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

/// An embedding of 0.5 ms, forward 1.5 ms, four kernels of backward 1 ms each with 8, 8, 8 and 32 MiB of gradients, optimizer 1 ms. A transfer takes 1 ms and 0.05 ms per MiB.
TaskGraph ddpStep(bool late, std::vector<int64_t> bucketMebi = {8, 8, 8, 32}) {
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

TEST(StructuralEdits, LargerBucketsPayLessStartUpAndLeaveWithTheirLastGradient) {
    const Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    const TaskGraph graph = ddpStep(false);
    // Ready at 3, 4, 5, 6: transfers end at 4.4, 5.8, 7.2, 9.8.
    EXPECT_DOUBLE_EQ(stepMs(graph), 10.8);
    EXPECT_NEAR(stepMsWith(Buckets(8, false), graph, analysis), 10.8, 1e-6);
    // 8 | 8 + 8 | 32, ready at 3, 5, 6: ends at 4.4, 6.8, 9.4. The first bucket keeps to 1 MiB.
    EXPECT_NEAR(stepMsWith(Buckets(16, false), graph, analysis), 10.4, 1e-6);
    // 8 | 48: beyond the sizes seen the line goes on, 3.4 ms.
    EXPECT_NEAR(stepMsWith(Buckets(400, false), graph, analysis), 10.4, 1e-6);
}

TEST(StructuralEdits, SplitBucketsLeaveEarlier) {
    const Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    GraphDraft draft;
    std::vector<Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<ExchangeMember>> buckets(2);
    for (Rank& rank : ranks) {
        rank.kernel(0, 2);
        const TaskId first = rank.kernel(1, 1);
        buckets[0].push_back(rank.communicate(1.4, first));
        rank.kernel(1, 1);
        rank.kernel(1, 1);
        const TaskId last = rank.kernel(1, 1);
        buckets[1].push_back(rank.communicate(2.2, last));
        rank.kernel(3, 1, buckets[1].back().transfer);
        rank.mark(true);
    }
    joinAll(draft, store::Op::allReduce, 8 * kMebi, buckets[0]);
    joinAll(draft, store::Op::allReduce, 24 * kMebi, buckets[1]);
    const TaskGraph graph = *std::move(draft).seal();
    EXPECT_DOUBLE_EQ(stepMs(graph), 9.2);
    EditEffect effect;
    TaskGraph changed = graph;
    // The range of sizes is under 4, but the cost of 8 MiB itself is known: four buckets, ready at 3, 4, 5, 6, end at 4.4, 5.8, 7.2, 8.6.
    Buckets(8, false).apply(changed, analysis, effect);
    EXPECT_NEAR(stepMs(changed), 9.6, 1e-6);
    int sent = 0;
    for (const Exchange& exchange : changed.exchanges) sent += exchange.members > 0 ? 1 : 0;
    EXPECT_EQ(sent, 4);
}

TEST(StructuralEdits, ThePresentSizeChangesNothing) {
    const Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    TaskGraph graph = ddpStep(false);
    // One rank leaves each transfer earlier, as members of a ring with a slow edge do.
    for (const Exchange& exchange : graph.exchanges) graph.durationNs[graph.membersOf(exchange)[1].transfer] -= 200'000;
    for (Outlook outlook : {Outlook::expected, Outlook::dear, Outlook::cheap, Outlook::coarse}) {
        EditEffect effect;
        effect.outlook = outlook;
        TaskGraph changed = graph;
        Buckets(8, false).apply(changed, analysis, effect);
        EXPECT_EQ(changed.durationNs, graph.durationNs);
        EXPECT_EQ(changed.leadNs, graph.leadNs);
        EXPECT_EQ(changed.edges.size(), graph.edges.size());
    }
}

TEST(StructuralEdits, WhatIsNotKnownOfNewBucketsIsOpen) {
    const Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    const auto stepMsBy = [&](Outlook outlook) {
        TaskGraph changed = ddpStep(false);
        EditEffect effect;
        effect.outlook = outlook;
        Buckets(400, false).apply(changed, analysis, effect);
        EXPECT_TRUE(effect.open);
        return stepMs(changed);
    };
    // 8 | 48: 3.4 ms by the line, between as long as 32 MiB takes and 48 / 32 of it.
    EXPECT_NEAR(stepMsBy(Outlook::expected), 10.4, 1e-6);
    EXPECT_LT(stepMsBy(Outlook::cheap), 10.4);
    EXPECT_GE(stepMsBy(Outlook::cheap), 9.6);
    EXPECT_GT(stepMsBy(Outlook::dear), 10.4);
    EXPECT_LE(stepMsBy(Outlook::dear), 10.9 + 1e-6);
}

TEST(StructuralEdits, BucketsOfUnknownCostAreRefused) {
    const Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    EXPECT_THROW(stepMsWith(Buckets(400, false), ddpStep(true, {14, 14, 14, 14}), analysis), EditError);
    EXPECT_THROW(stepMsWith(Buckets(16, false), ddpStep(false), analysisOf(store::Op::allReduce, CommRole::activations)), EditError);
}

/// Forward 2 ms and a kernel of backward of 1 ms for each bucket, as in ddpStep. The host waits for the second bucket's transfer in a call named by the string `name`, in front of
/// the call of the last kernel of backward (`early`) or behind it.
TaskGraph stepWithWait(TaskKind kind, uint32_t name, bool early, std::vector<int64_t> bucketMebi = {8, 8, 8, 32}) {
    GraphDraft draft;
    std::vector<Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<ExchangeMember>> buckets(bucketMebi.size());
    for (size_t r = 0; r < 2; ++r) {
        const auto wait = [&] { draft.addEdge(draft.addTask(on(ranks[r].host, kind, name), 0), buckets[1][r].transfer, WaitKind::blocking); };
        ranks[r].kernel(0, 2);
        for (size_t k = 0; k < bucketMebi.size(); ++k) {
            if (early && k + 1 == bucketMebi.size()) wait();
            const TaskId after = ranks[r].kernel(k + 1 < bucketMebi.size() ? 1 : 2, 1);
            buckets[k].push_back(ranks[r].communicate(1 + 0.05 * static_cast<double>(bucketMebi[k]), after));
        }
        if (!early) wait();
        ranks[r].kernel(3, 1, buckets.back()[r].transfer);
        ranks[r].mark(true);
    }
    for (size_t b = 0; b < buckets.size(); ++b) joinAll(draft, store::Op::allReduce, bucketMebi[b] * kMebi, buckets[b]);
    return *std::move(draft).seal();
}

int waitsOfTheHost(const TaskGraph& graph) {
    int count = 0;
    for (TaskId task = 0; task < graph.size(); ++task)
        for (const Edge& edge : graph.edgesOf(task)) count += static_cast<WaitKind>(edge.kind) == WaitKind::blocking ? 1 : 0;
    return count;
}

TEST(StructuralEdits, FewerBucketsDoNotFillTheLaunchQueue) {
    Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    analysis.facts.strings = {"", "cudaLaunchKernelExC", "cudaStreamWaitEvent", "cudaEventRecord", "cudaStreamSynchronize"};
    // The host comes to the last kernel when a transfer made room in the queue: at 5.8, so that it ends at 6.8. That holds up nobody: the network is busy until 7.2.
    for (const auto& [kind, name] : {std::pair{TaskKind::host, 1U}, {TaskKind::blockingCall, 2U}, {TaskKind::blockingCall, 3U}}) {
        TaskGraph graph = stepWithWait(kind, name, true);
        EXPECT_NEAR(stepMs(graph), 10.8, 1e-6);
        EditEffect effect;
        // 8 | 48: the second one leaves behind the last kernel, whose call would wait for it.
        Buckets(400, false).apply(graph, analysis, effect);
        EXPECT_NEAR(stepMs(graph), 10.4, 1e-6);
        EXPECT_EQ(waitsOfTheHost(graph), 0);
    }
}

TEST(StructuralEdits, WhatElseTheHostWaitsForStays) {
    Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    analysis.facts.strings = {"", "cudaLaunchKernelExC", "cudaStreamWaitEvent", "cudaEventRecord", "cudaStreamSynchronize"};
    EditEffect effect;
    TaskGraph synchronised = stepWithWait(TaskKind::blockingCall, 4, false);
    Buckets(400, false).apply(synchronised, analysis, effect);
    EXPECT_EQ(waitsOfTheHost(synchronised), 2);
    // More buckets than before fill a queue no less.
    TaskGraph split = stepWithWait(TaskKind::host, 1, false, {8, 24, 24, 32});
    Buckets(8, false).apply(split, analysis, effect);
    EXPECT_EQ(waitsOfTheHost(split), 2);
}

TEST(StructuralEdits, OverlapSendsBucketsDuringTheBackwardPass) {
    const Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    const TaskGraph graph = ddpStep(true, {14, 14, 14, 14});
    // All at 6: four times 1.7, then the optimizer.
    EXPECT_NEAR(stepMs(graph), 13.8, 1e-6);
    // Gradients by time, 14 MiB per kernel: ready at 3, 4, 5, 6: the network is busy from 3 on.
    EXPECT_NEAR(stepMsWith(Overlap(), graph, analysis), 10.8, 1e-6);
    EXPECT_THROW(stepMsWith(Overlap(), ddpStep(false), analysis), EditError);
}

/// ZeRO-2 with one bucket: an update of 1 ms, the parameters gathered (24 MiB, 2.4 ms), four kernels forward and four backward of 1 ms, 24 MiB of gradients reduced, 1 ms more.
TaskGraph oneBucketStep() {
    GraphDraft draft;
    std::vector<Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<ExchangeMember> gather, reduce;
    for (Rank& rank : ranks) {
        const TaskId update = rank.kernel(3, 1);
        gather.push_back(rank.communicate(2.4, update));
        for (int layer = 0; layer < 4; ++layer) rank.kernel(0, 1, layer == 0 ? gather.back().transfer : kNoTask);
        TaskId last = kNoTask;
        for (int layer = 0; layer < 4; ++layer) last = rank.kernel(1, 1);
        reduce.push_back(rank.communicate(2.4, last));
        rank.kernel(5, 1, reduce.back().transfer);
        rank.mark(true);
    }
    joinAll(draft, store::Op::allGather, 24 * kMebi, gather);
    joinAll(draft, store::Op::reduceScatter, 24 * kMebi, reduce);
    return *std::move(draft).seal();
}

/// The same with a gather and a reduction for each of the four layers, all waited for together: by a copy (the loss read back, say) in front of forward, and by the optimizer.
TaskGraph fourBucketStep() {
    GraphDraft draft;
    std::vector<Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<ExchangeMember>> gathers(4), reductions(4);
    for (Rank& rank : ranks) {
        const TaskId update = rank.kernel(3, 1);
        for (auto& gather : gathers) gather.push_back(rank.communicate(0.6, update));
        draft.addEdge(draft.addTask(on(rank.compute, TaskKind::copy), 0), gathers.back().back().transfer, WaitKind::event);
        for (int layer = 0; layer < 4; ++layer) rank.kernel(0, 1);
        TaskId last = kNoTask;
        for (int layer = 0; layer < 4; ++layer) last = rank.kernel(1, 1);
        for (auto& reduce : reductions) reduce.push_back(rank.communicate(0.6, last));
        rank.kernel(5, 1, reductions.back().back().transfer);
        rank.mark(true);
    }
    for (const auto& members : gathers) joinAll(draft, store::Op::allGather, 6 * kMebi, members);
    for (const auto& members : reductions) joinAll(draft, store::Op::reduceScatter, 6 * kMebi, members);
    return *std::move(draft).seal();
}

TEST(StructuralEdits, OverlapLetsForwardWaitForEachGatherWhereItIsUsed) {
    Analysis analysis = analysisOf(store::Op::allGather, CommRole::gradients);
    analysis.layout.uses[kGroup][store::Op::reduceScatter] = {CommRole::gradients, 1};
    analysis.peaks = parseLinkPeaks("intra:gbps=100,alpha_us=0.000001");
    const TaskGraph graph = fourBucketStep();
    EXPECT_NEAR(stepMs(graph), 14.8, 1e-6);
    // Gathers end at 1.6, 2.2, 2.8 and 3.4, in time for the layers at 1.6, 2.6, 3.6 and 4.6. Backward ends at 9.6, the last reduction 0.6 later.
    EXPECT_NEAR(stepMsWith(Overlap(), graph, analysis), 11.2, 1e-4);
}

TEST(StructuralEdits, ParametersGatheredInPiecesAreWaitedForWhereTheyAreUsed) {
    Analysis analysis = analysisOf(store::Op::allGather, CommRole::gradients);
    analysis.layout.uses[kGroup][store::Op::reduceScatter] = {CommRole::gradients, 1};
    analysis.peaks = parseLinkPeaks("intra:gbps=100,alpha_us=0.000001");  // time goes with the bytes
    const TaskGraph graph = oneBucketStep();
    EXPECT_NEAR(stepMs(graph), 14.8, 1e-6);
    // Gradients of 6 MiB per kernel: buckets of 6, 12 and 6, and parameters the other way round. Gathers end at 1.6, 2.8 and 3.4; forward begins at 1.6 and waits for the
    // second piece, which its second kernel needs, until 2.8. Backward ends at 9.8: reductions at 6.8 + 0.6, 8.8 + 1.2, 10 + 0.6.
    EXPECT_NEAR(stepMsWith(Buckets(8, true), graph, analysis), 11.6, 1e-4);
    // Without overlap nobody waits for a piece alone: forward begins at 3.4, the last reduction ends at 11.4 + 0.2 + 0.6.
    EXPECT_NEAR(stepMsWith(Buckets(8, false), graph, analysis), 13.2, 1e-4);
}

TEST(StructuralEdits, BucketsThatAreGatheredTogetherAreUpdatedByOneKernel) {
    Analysis analysis = analysisOf(store::Op::allGather, CommRole::gradients);
    analysis.layout.uses[kGroup][store::Op::reduceScatter] = {CommRole::gradients, 1};
    analysis.peaks = parseLinkPeaks("intra:gbps=100,alpha_us=0.000001");  // time goes with the bytes
    GraphDraft draft;
    std::vector<Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<ExchangeMember>> gathers(4);
    std::vector<ExchangeMember> reduce;
    for (Rank& rank : ranks) {
        rank.kernel(7, 1);
        for (auto& gather : gathers) gather.push_back(rank.communicate(0.0006, rank.kernel(3, 0.005)));
        for (int layer = 0; layer < 4; ++layer) rank.kernel(0, 1, layer == 0 ? gathers.back().back().transfer : kNoTask);
        TaskId last = kNoTask;
        for (int layer = 0; layer < 4; ++layer) last = rank.kernel(1, 1);
        reduce.push_back(rank.communicate(0.0024, last));
        rank.kernel(5, 1, reduce.back().transfer);
        rank.mark(true);
    }
    for (const auto& members : gathers) joinAll(draft, store::Op::allGather, 6 * kMebi, members);
    joinAll(draft, store::Op::reduceScatter, 24 * kMebi, reduce);
    const TaskGraph graph = *std::move(draft).seal();
    EXPECT_NEAR(stepMs(graph), 1 + 4 * 0.005 + 0.0006 + 8 + 0.0024 + 1, 1e-6);
    // Gathers of 6, 12 and 6 MiB: three updates, each no longer than an empty kernel.
    EXPECT_NEAR(stepMsWith(Buckets(8, false), graph, analysis), 1 + 3 * 0.005 + 0.0006 + 8 + 0.0006 + 1, 1e-6);
}

/// Layers of 2 ms, each gathered in 1 ms when it is due.
TaskGraph shardedStep(int layers) {
    GraphDraft draft;
    std::vector<Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<ExchangeMember>> gathers(static_cast<size_t>(layers));
    for (Rank& rank : ranks) {
        TaskId last = kNoTask;
        for (int layer = 0; layer < layers; ++layer) {
            const ExchangeMember gather = rank.communicate(1, last);
            gathers[static_cast<size_t>(layer)].push_back(gather);
            last = rank.kernel(1, 2, gather.transfer);
        }
        rank.mark(true);
    }
    for (const auto& members : gathers) joinAll(draft, store::Op::allGather, 64 * kMebi, members);
    return *std::move(draft).seal();
}

TEST(StructuralEdits, PrefetchGathersTheNextLayerWhileThePresentOneComputes) {
    const Analysis analysis = analysisOf(store::Op::allGather, CommRole::shardedParameters);
    const TaskGraph graph = shardedStep(6);
    EXPECT_DOUBLE_EQ(stepMs(graph), 18);
    EXPECT_DOUBLE_EQ(stepMsWith(Prefetch(1), graph, analysis), 13);
    TaskGraph prefetched = graph;
    EditEffect effect;
    Prefetch(1).apply(prefetched, analysis, effect);
    EXPECT_THROW(Prefetch(1).apply(prefetched, analysis, effect), EditError);
    EXPECT_THROW(stepMsWith(Prefetch(1), ddpStep(false), analysisOf(store::Op::allReduce, CommRole::gradients)), EditError);
}

/// A pipeline as its plan says: a forward pass is `layers` kernels of 1 / layers ms in all, a backward pass takes twice that, messages take no time. Optimizer 1 ms.
/// `slower`: by stage, how many times as long its passes take; empty: once.
TaskGraph pipelineStep(const PipelineShape& shape, int layers, const std::vector<double>& slower = {}) {
    GraphDraft draft;
    std::map<std::tuple<bool, int, int>, std::array<ExchangeMember, 2>> messages;
    const int perChunk = layers / shape.virtualStages;
    for (int stage = 0; stage < shape.stages; ++stage) {
        const double factor = slower.empty() ? 1 : slower[static_cast<size_t>(stage)];
        Rank rank(draft, stage);
        TaskId received = kNoTask;
        for (const PipelineAction& action : planStage(shape, stage)) {
            if (action.kind == PipelineAction::Kind::transfer) {
                const ExchangeMember member = rank.communicate(0, draft.last(rank.compute));
                for (const PipelineMessage& message : action.messages) messages[{message.activation, message.micro, message.place}][message.send ? 0 : 1] = member;
                if (action.receives()) received = member.transfer;
                continue;
            }
            const bool forward = action.kind == PipelineAction::Kind::forward;
            for (int layer = 0; layer < perChunk; ++layer) {
                for (uint32_t key : {0u, 1u}) {
                    rank.kernel(forward ? key : 2 + key, factor * (forward ? 0.5 : 1.0) / layers, received);
                    received = kNoTask;
                }
            }
        }
        rank.kernel(9, 1, received);
        rank.mark(true);
    }
    for (const auto& [key, members] : messages) {
        Exchange exchange;
        exchange.communicatorId = kGroup;
        exchange.op = store::Op::send;
        exchange.bytes = kMebi;
        exchange.step = 0;
        const uint32_t number = draft.addExchange(exchange, members);
        for (const ExchangeMember& member : members) draft.info(member.arrival).detail = draft.info(member.transfer).detail = number;
        draft.addEdge(members[0].transfer, members[1].arrival, WaitKind::peer);
        draft.addEdge(members[1].transfer, members[0].arrival, WaitKind::peer);
    }
    return *std::move(draft).seal();
}

Analysis pipelineAnalysis(const PipelineShape& shape) {
    Analysis analysis = analysisOf(store::Op::send, CommRole::pipeline);
    Pipeline pipeline;
    for (int stage = 0; stage < shape.stages; ++stage) pipeline.stages.push_back(stage);
    pipeline.microBatches = shape.microBatches;
    pipeline.virtualStages = shape.virtualStages;
    pipeline.schedule = shape.schedule;
    analysis.layout.pipelines = {pipeline};
    return analysis;
}

TEST(StructuralEdits, MoreMicroBatchesShareOneBubble) {
    const PipelineShape two{"1f1b", 2, 2, 1};
    const TaskGraph graph = pipelineStep(two, 2);
    // (M + P - 1) x 3 ms, and the optimizer.
    EXPECT_NEAR(stepMs(graph), 10, 1e-3);
    double tokens = 0;
    PipelineOrder::To to;
    to.microBatches = 4;
    EXPECT_NEAR(stepMsWith(PipelineOrder(to), graph, pipelineAnalysis(two), &tokens), 16, 1e-3);
    EXPECT_DOUBLE_EQ(tokens, 2);
    to.microBatches = 1;
    EXPECT_NEAR(stepMsWith(PipelineOrder(to), graph, pipelineAnalysis(two), &tokens), 7, 1e-3);
    EXPECT_DOUBLE_EQ(tokens, 0.5);
}

TEST(StructuralEdits, AScheduleIsPlayedAsIfItHadBeenRecorded) {
    for (const PipelineShape& from : {PipelineShape{"1f1b", 4, 8, 1}, PipelineShape{"gpipe", 4, 8, 1}, PipelineShape{"interleaved", 4, 8, 2}})
        for (const PipelineShape& wanted : {PipelineShape{"1f1b", 4, 4, 1}, PipelineShape{"gpipe", 4, 12, 1}, PipelineShape{"interleaved", 4, 8, 2}, PipelineShape{"interleaved", 4, 16, 4}}) {
            PipelineOrder::To to{wanted.microBatches, wanted.virtualStages, wanted.schedule};
            EXPECT_NEAR(stepMsWith(PipelineOrder(to), pipelineStep(from, 8), pipelineAnalysis(from)), stepMs(pipelineStep(wanted, 8)), 1e-3)
                << from.schedule << " to " << wanted.schedule << " with " << wanted.microBatches;
        }
}

/// Changes one after the other, as `rankscope whatif` makes them.
double stepMsAfter(const std::vector<const char*>& changes, const TaskGraph& graph, const Analysis& recorded) {
    Analysis analysis = recorded;
    analysis.replay.steps = {0};
    ChangedJob job{graph, {}, {}};
    for (const char* text : changes) change(job, *parseEdit(text), analysis);
    return stepMs(job.graph);
}

TEST(StructuralEdits, PipelinesAreChangedAgain) {
    const PipelineShape from{"gpipe", 4, 8, 1};
    const Analysis analysis = pipelineAnalysis(from);
    const TaskGraph graph = pipelineStep(from, 8);
    EXPECT_NEAR(stepMsAfter({"micro-batches:count=16", "schedule:name=1f1b"}, graph, analysis), stepMs(pipelineStep({"1f1b", 4, 16, 1}, 8)), 1e-3);
    EXPECT_NEAR(stepMsAfter({"schedule:name=interleaved,virtual=2", "micro-batches:count=16"}, graph, analysis), stepMs(pipelineStep({"interleaved", 4, 16, 2}, 8)), 1e-3);
    EXPECT_NEAR(stepMsAfter({"micro-batches:count=16", "micro-batches:count=4"}, graph, analysis), stepMs(pipelineStep({"gpipe", 4, 4, 1}, 8)), 1e-3);
    const std::vector<double> slower{1, 1, 1, 1.5};
    EXPECT_NEAR(stepMsAfter({"micro-batches:count=16", "layers:parts=yes"}, pipelineStep(from, 8, slower), analysis),
                stepMsAfter({"layers:parts=yes", "micro-batches:count=16"}, pipelineStep(from, 8, slower), analysis), 1e-2);
    EXPECT_THROW(stepMsAfter({"micro-batches:count=6", "schedule:name=interleaved,virtual=2"}, graph, analysis), EditError);  // no multiple of the stages any more
}

TEST(StructuralEdits, ImpossiblePipelinesAreRefused) {
    const PipelineShape shape{"1f1b", 4, 8, 1};
    const TaskGraph graph = pipelineStep(shape, 2);
    const Analysis analysis = pipelineAnalysis(shape);
    EXPECT_THROW(stepMsWith(PipelineOrder({6, 2, "interleaved"}), graph, analysis), EditError);   // not a multiple of the stages
    EXPECT_THROW(stepMsWith(PipelineOrder({8, 4, "interleaved"}), graph, analysis), EditError);   // two layers for four chunks
    EXPECT_THROW(stepMsWith(PipelineOrder({8, 2, "1f1b"}), graph, analysis), EditError);
    Analysis other = analysis;
    other.layout.pipelines.front().microBatches = 4;
    EXPECT_THROW(stepMsWith(PipelineOrder({16, 1, "1f1b"}), graph, other), EditError);            // the messages say otherwise
    EXPECT_THROW(stepMsWith(PipelineOrder({16, 1, "1f1b"}), ddpStep(false), analysisOf(store::Op::allReduce, CommRole::gradients)), EditError);
}

TEST(StructuralEdits, LayersMoveToTheLighterStage) {
    const PipelineShape shape{"1f1b", 2, 2, 1};
    const TaskGraph graph = pipelineStep(shape, 4, {1, 2});
    const Analysis analysis = pipelineAnalysis(shape);
    // The second stage ends its backward passes at 7 and 13, the first at 15.
    EXPECT_NEAR(stepMs(graph), 16, 1e-3);
    // One of its four layers moves: 4.5 ms a micro-batch on both, 3 x 4.5, and an optimizer of 1.5 ms.
    EXPECT_NEAR(stepMsWith(MoveLayers(std::nullopt), graph, analysis), 15, 1e-3);
    EXPECT_NEAR(stepMsWith(MoveLayers(MoveLayers::Move{1, 0, 1}), graph, analysis), 15, 1e-3);
    EXPECT_THROW(stepMsWith(MoveLayers(MoveLayers::Move{1, 0, 4}), graph, analysis), EditError);
    EXPECT_THROW(stepMsWith(MoveLayers(MoveLayers::Move{1, 2, 1}), graph, analysis), EditError);
    EXPECT_THROW(stepMsWith(MoveLayers(std::nullopt), pipelineStep(shape, 4), analysis), EditError);  // even already
    // One of two layers is too much to move; a part of one makes 3.45 ms a micro-batch on both, and an optimizer of 1.15 ms.
    EXPECT_THROW(stepMsWith(MoveLayers(std::nullopt), pipelineStep(shape, 2, {1, 1.3}), analysis), EditError);
    EXPECT_NEAR(stepMsWith(MoveLayers(std::nullopt, true), pipelineStep(shape, 2, {1, 1.3}), analysis), 11.5, 1e-3);
}

TEST(StructuralEdits, LayersMoveAgainFromWhereTheyAre) {
    const PipelineShape shape{"1f1b", 2, 2, 1};
    const TaskGraph graph = pipelineStep(shape, 4, {1, 2});
    const Analysis analysis = pipelineAnalysis(shape);
    const double recorded = stepMs(graph);
    // There and back.
    EXPECT_NEAR(stepMsAfter({"layers:from=0,to=1", "layers:from=1,to=0"}, graph, analysis), recorded, 1e-4);
    EXPECT_NEAR(stepMsAfter({"layers:from=1,to=0,count=3", "layers:from=0,to=1,count=2", "layers:from=0,to=1"}, graph, analysis), recorded, 1e-4);
    // Two at once, or one after the other; and the balance counts from there.
    EXPECT_NEAR(stepMsAfter({"layers:from=1,to=0", "layers:from=1,to=0"}, graph, analysis), stepMsAfter({"layers:from=1,to=0,count=2"}, graph, analysis), 1e-4);
    EXPECT_NEAR(stepMsAfter({"layers:from=0,to=1", "layers"}, graph, analysis), 15, 1e-3);
    // Four and one make five: stage 1 can give four.
    EXPECT_NO_THROW(stepMsAfter({"layers:from=0,to=1", "layers:from=1,to=0,count=4"}, graph, analysis));
    EXPECT_THROW(stepMsAfter({"layers:from=1,to=0", "layers:from=1,to=0,count=3"}, graph, analysis), EditError);
    EXPECT_THROW(stepMsAfter({"layers:parts=yes", "layers:from=1,to=0"}, graph, analysis), EditError);  // no whole ones any more
}

TEST(StructuralEdits, MoreRanksAreMoreTokens) {
    Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    analysis.peaks = parseLinkPeaks("intra:gbps=100,alpha_us=1;inter:gbps=100,alpha_us=1");
    TaskGraph graph = ddpStep(false);
    EditEffect effect;
    Replicas(8).apply(graph, analysis, effect);  // of two
    EXPECT_DOUBLE_EQ(effect.replicas, 4);
    Replicas(2).apply(graph, present(analysis, effect), effect);
    EXPECT_DOUBLE_EQ(effect.replicas, 1);
}

TEST(StructuralEdits, ReplicasCostWhatTheLinksSay) {
    Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    const TaskGraph graph = ddpStep(false);
    EXPECT_THROW(stepMsWith(Replicas(4), graph, analysis), EditError);  // no links known
    analysis.peaks = parseLinkPeaks("intra:gbps=100,alpha_us=1;inter:gbps=100,alpha_us=1");
    EXPECT_NEAR(stepMsWith(Replicas(2), graph, analysis), 10.8, 1e-6);
    EXPECT_NEAR(stepMsWith(Replicas(1), graph, analysis), 7, 1e-6);
    EXPECT_GT(stepMsWith(Replicas(8), graph, analysis), 10.8);
    // Each change counts from the one before.
    EXPECT_NEAR(stepMsAfter({"dp-ranks:count=8", "dp-ranks:count=4"}, graph, analysis), stepMsAfter({"dp-ranks:count=4"}, graph, analysis), 1e-4);
    EXPECT_NEAR(stepMsAfter({"dp-ranks:count=8", "dp-ranks:count=2"}, graph, analysis), 10.8, 1e-4);
    EXPECT_THROW(stepMsAfter({"dp-ranks:count=1", "dp-ranks:count=4"}, graph, analysis), EditError);
}

TEST(StructuralEdits, LayersReducedOneByOneAreNoMicroSteps) {
    // Four equal buckets of one backward pass.
    Analysis analysis = analysisOf(store::Op::allReduce, CommRole::gradients);
    const TaskGraph graph = ddpStep(false, {8, 8, 8, 8});
    EXPECT_THROW(stepMsAfter({"reduce-once:micro-steps=4"}, graph, analysis), EditError);
    EXPECT_THROW(stepMsAfter({"reduce-once:micro-steps=2"}, graph, analysis), EditError);
}

/// Two nodes of two ranks, ten times as slow between as inside. Tensor-parallel groups {0, 2} and {1, 3} lie across, gradients are summed inside.
Analysis acrossNodes() {
    Analysis analysis;
    const auto group = [&analysis](int64_t id, std::vector<int> ranks, int nodes, CommRole role) {
        Communicator& communicator = analysis.facts.communicators[id];
        communicator.id = id;
        communicator.size = communicator.smallestNode = 2;
        communicator.nodes = nodes;
        if (nodes > 1) communicator.smallestNode = 1;
        communicator.ranks = std::move(ranks);
        analysis.layout.roles[id] = role;
        analysis.layout.uses[id][store::Op::allReduce] = {role, 1};
    };
    group(1, {0, 2}, 2, CommRole::activations);
    group(2, {1, 3}, 2, CommRole::activations);
    group(3, {0, 1}, 1, CommRole::gradients);
    group(4, {2, 3}, 1, CommRole::gradients);
    for (int rank = 0; rank < 4; ++rank) {
        RankFacts facts;
        facts.rank = rank;
        facts.hostId = rank / 2;
        analysis.facts.ranks.push_back(facts);
    }
    analysis.peaks = parseLinkPeaks("intra:gbps=100,alpha_us=0.000001;inter:gbps=10,alpha_us=0.000001");
    return analysis;
}

TEST(StructuralEdits, GroupsInsideNodesUseTheFastLinksAndTheOthersTheSlowOnes) {
    const Analysis analysis = acrossNodes();
    GraphDraft draft;
    std::vector<Rank> ranks;
    std::vector<std::vector<ExchangeMember>> first(2), second(2), sums(2);
    for (int rank = 0; rank < 4; ++rank) {
        Rank& of = ranks.emplace_back(draft, rank);
        const auto tensor = static_cast<size_t>(rank % 2), data = static_cast<size_t>(rank / 2);
        first[tensor].push_back(of.communicate(20, of.kernel(1, 1)));
        second[tensor].push_back(of.communicate(20, of.kernel(1, 1, first[tensor].back().transfer)));
        sums[data].push_back(of.communicate(2, kNoTask));
        of.mark(true);
    }
    for (size_t g = 0; g < 2; ++g) {
        joinAll(draft, store::Op::allReduce, 100'000'000, first[g], 1 + static_cast<int64_t>(g));
        joinAll(draft, store::Op::allReduce, 100'000'000, second[g], 1 + static_cast<int64_t>(g));
        joinAll(draft, store::Op::allReduce, 100'000'000, sums[g], 3 + static_cast<int64_t>(g));
    }
    const TaskGraph graph = *std::move(draft).seal();
    EXPECT_NEAR(stepMs(graph), 44, 1e-6);
    // 100 MB take 1 ms inside a node and 10 ms between nodes at best, twice that as measured on both.
    EXPECT_NEAR(stepMsWith(PlaceGroups(std::nullopt), graph, analysis), 1 + 2 + 1 + 2 + 20, 1e-6);
    EXPECT_THROW(stepMsWith(PlaceGroups(3), graph, analysis), EditError);  // inside already
    Analysis unknown = analysis;
    unknown.peaks = {};
    EXPECT_THROW(stepMsWith(PlaceGroups(std::nullopt), graph, unknown), EditError);
    Analysis small = analysis;
    for (RankFacts& rank : small.facts.ranks) rank.hostId = rank.rank;
    EXPECT_THROW(stepMsWith(PlaceGroups(std::nullopt), graph, small), EditError);  // does not fit
}

}  // namespace
}  // namespace rankscope::analyzer

// SPDX-License-Identifier: Apache-2.0
// Edits that move the work of buckets, gathers and updates, on graphs small enough to be played by hand.
#include <gtest/gtest.h>

#include <array>

#include "tests/unit/analyzer/hand_made_step.h"

namespace rankscope::edits {
namespace {

TEST(StructuralEdits, LargerBucketsPayLessStartUpAndLeaveWithTheirLastGradient) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    const replay::TaskGraph graph = test::ddpStep(false);
    // Ready at 3, 4, 5, 6: transfers end at 4.4, 5.8, 7.2, 9.8.
    EXPECT_DOUBLE_EQ(test::stepMs(graph), 10.8);
    EXPECT_NEAR(test::stepMsWith(*parseEdit("buckets:mb=8"), graph, analysis), 10.8, 1e-6);
    // 8 | 8 + 8 | 32, ready at 3, 5, 6: ends at 4.4, 6.8, 9.4. The first bucket keeps to 1 MiB.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("buckets:mb=16"), graph, analysis), 10.4, 1e-6);
    // 8 | 48: beyond the sizes seen the line goes on, 3.4 ms.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("buckets:mb=400"), graph, analysis), 10.4, 1e-6);
}

TEST(StructuralEdits, SplitBucketsLeaveEarlier) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<replay::ExchangeMember>> buckets(2);
    for (test::Rank& rank : ranks) {
        rank.kernel(0, 2);
        const replay::TaskId first = rank.kernel(1, 1);
        buckets[0].push_back(rank.communicate(1.4, first));
        rank.kernel(1, 1);
        rank.kernel(1, 1);
        const replay::TaskId last = rank.kernel(1, 1);
        buckets[1].push_back(rank.communicate(2.2, last));
        rank.kernel(3, 1, buckets[1].back().transfer);
        rank.mark(true);
    }
    test::joinAll(draft, store::Op::allReduce, 8 * test::kMebi, buckets[0]);
    test::joinAll(draft, store::Op::allReduce, 24 * test::kMebi, buckets[1]);
    const replay::TaskGraph graph = *std::move(draft).seal();
    EXPECT_DOUBLE_EQ(test::stepMs(graph), 9.2);
    EditEffect effect;
    replay::TaskGraph changed = graph;
    // The range of sizes is under 4, but the cost of 8 MiB itself is known: four buckets, ready at 3, 4, 5, 6, end
    // at 4.4, 5.8, 7.2, 8.6.
    parseEdit("buckets:mb=8")->apply(changed, analysis, effect);
    EXPECT_NEAR(test::stepMs(changed), 9.6, 1e-6);
    int sent = 0;
    for (const replay::Exchange& exchange : changed.exchanges) sent += exchange.members > 0 ? 1 : 0;
    EXPECT_EQ(sent, 4);
}

TEST(StructuralEdits, ThePresentSizeChangesNothing) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    replay::TaskGraph graph = test::ddpStep(false);
    // One rank leaves each transfer earlier, as members of a ring with a slow edge do.
    for (const replay::Exchange& exchange : graph.exchanges)
        graph.durationNs[graph.membersOf(exchange)[1].transfer] -= 200'000;
    for (Outlook outlook : {Outlook::expected, Outlook::dear, Outlook::cheap, Outlook::coarse}) {
        EditEffect effect;
        effect.outlook = outlook;
        replay::TaskGraph changed = graph;
        parseEdit("buckets:mb=8")->apply(changed, analysis, effect);
        EXPECT_EQ(changed.durationNs, graph.durationNs);
        EXPECT_EQ(changed.leadNs, graph.leadNs);
        EXPECT_EQ(changed.edges.size(), graph.edges.size());
    }
}

/// As ddpStep, with a backward pass that goes on `behind` kernels behind each bucket when its sum is there.
replay::TaskGraph stepThatWaitsForEach(size_t behind) {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    constexpr std::array<int64_t, 4> kBuckets{8, 8, 8, 32};
    std::vector<std::vector<replay::ExchangeMember>> buckets(kBuckets.size());
    for (size_t r = 0; r < 2; ++r) {
        ranks[r].kernel(0, 2);
        for (size_t k = 0; k < kBuckets.size(); ++k) {
            const replay::TaskId awaited = k >= behind ? buckets[k - behind][r].transfer : replay::kNoTask;
            const replay::TaskId after = ranks[r].kernel(k + 1 < kBuckets.size() ? 1 : 2, 1, awaited);
            buckets[k].push_back(ranks[r].communicate(1 + 0.05 * static_cast<double>(kBuckets[k]), after));
        }
        ranks[r].kernel(3, 1, buckets.back()[r].transfer);
        ranks[r].mark(true);
    }
    for (size_t b = 0; b < buckets.size(); ++b)
        test::joinAll(draft, store::Op::allReduce, kBuckets[b] * test::kMebi, buckets[b]);
    return *std::move(draft).seal();
}

TEST(StructuralEdits, BackwardThatWaitsBehindEachBucketWaitsBehindTheNewOnes) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    const replay::TaskGraph graph = stepThatWaitsForEach(1);
    EXPECT_DOUBLE_EQ(test::stepMs(graph), 2 + 3 * (1 + 1.4) + 1 + 2.6 + 1);
    EXPECT_NEAR(test::stepMsWith(*parseEdit("buckets:mb=8"), graph, analysis), 13.8, 1e-6);
    // 8 | 8 + 8 | 32: one start-up less, and the second bucket is not awaited before its gradients are there.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("buckets:mb=16"), graph, analysis), 2 + 1 + 1.4 + 2 + 1.8 + 1 + 2.6 + 1,
                1e-6);
    // Behind the next bucket: 8 | 8 + 8 | 32 leave at 3, 5 and 6; the optimizer follows.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("buckets:mb=16"), stepThatWaitsForEach(2), analysis), 10.4, 1e-6);
}

TEST(StructuralEdits, WhatIsNotKnownOfNewBucketsIsOpen) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    const auto stepMsBy = [&](Outlook outlook) {
        replay::TaskGraph changed = test::ddpStep(false);
        EditEffect effect;
        effect.outlook = outlook;
        parseEdit("buckets:mb=400")->apply(changed, analysis, effect);
        EXPECT_TRUE(effect.open);
        return test::stepMs(changed);
    };
    // 8 | 48: 3.4 ms by the line, between as long as 32 MiB takes and 48 / 32 of it.
    EXPECT_NEAR(stepMsBy(Outlook::expected), 10.4, 1e-6);
    EXPECT_LT(stepMsBy(Outlook::cheap), 10.4);
    EXPECT_GE(stepMsBy(Outlook::cheap), 9.6);
    EXPECT_GT(stepMsBy(Outlook::dear), 10.4);
    EXPECT_LE(stepMsBy(Outlook::dear), 10.9 + 1e-6);
}

TEST(StructuralEdits, BucketsOfUnknownCostAreRefused) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    EXPECT_THROW(test::stepMsWith(*parseEdit("buckets:mb=400"), test::ddpStep(true, {14, 14, 14, 14}), analysis),
                 EditError);
    EXPECT_THROW(test::stepMsWith(*parseEdit("buckets:mb=16"), test::ddpStep(false),
                                  test::analysisOf(store::Op::allReduce, facts::CommRole::activations)),
                 EditError);
}

/// Forward 2 ms and a kernel of backward of 1 ms for each bucket, as in ddpStep. The host waits for the second bucket's
/// transfer in a call named by the string `name`, in front of the call of the last kernel of backward (`early`) or
/// behind it. A copy waits for it on the stream that computes.
replay::TaskGraph stepWithWait(replay::TaskKind kind, uint32_t name, bool early,
                               std::vector<int64_t> bucketMebi = {8, 8, 8, 32}) {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<replay::ExchangeMember>> buckets(bucketMebi.size());
    for (size_t r = 0; r < 2; ++r) {
        const auto wait = [&] {
            const bool copies = kind == replay::TaskKind::copy;
            draft.addEdge(draft.addTask(test::on(copies ? ranks[r].compute : ranks[r].host, kind, name), 0),
                          buckets[1][r].transfer, copies ? replay::WaitKind::event : replay::WaitKind::blocking);
        };
        ranks[r].kernel(0, 2);
        for (size_t k = 0; k < bucketMebi.size(); ++k) {
            if (early && k + 1 == bucketMebi.size()) wait();
            const replay::TaskId after = ranks[r].kernel(k + 1 < bucketMebi.size() ? 1 : 2, 1);
            buckets[k].push_back(ranks[r].communicate(1 + 0.05 * static_cast<double>(bucketMebi[k]), after));
        }
        if (!early) wait();
        ranks[r].kernel(3, 1, buckets.back()[r].transfer);
        ranks[r].mark(true);
    }
    for (size_t b = 0; b < buckets.size(); ++b)
        test::joinAll(draft, store::Op::allReduce, bucketMebi[b] * test::kMebi, buckets[b]);
    return *std::move(draft).seal();
}

int waitsOfTheHost(const replay::TaskGraph& graph) {
    int count = 0;
    for (replay::TaskId task = 0; task < graph.size(); ++task)
        for (const replay::Edge& edge : graph.edgesOf(task)) count += edge.kind == replay::WaitKind::blocking ? 1 : 0;
    return count;
}

TEST(StructuralEdits, FewerBucketsDoNotFillTheLaunchQueue) {
    job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    analysis.facts.strings = {"", "cudaLaunchKernelExC", "cudaStreamWaitEvent", "cudaEventRecord",
                              "cudaStreamSynchronize"};
    // The host comes to the last kernel when a transfer made room in the queue: at 5.8, so that it ends at 6.8. That
    // holds up nobody: the network is busy until 7.2.
    for (const auto& [kind, name] : {std::pair{replay::TaskKind::host, 1U},
                                     {replay::TaskKind::blockingCall, 2U},
                                     {replay::TaskKind::blockingCall, 3U}}) {
        replay::TaskGraph graph = stepWithWait(kind, name, true);
        EXPECT_NEAR(test::stepMs(graph), 10.8, 1e-6);
        EditEffect effect;
        // 8 | 48: the second one leaves behind the last kernel, whose call would wait for it.
        parseEdit("buckets:mb=400")->apply(graph, analysis, effect);
        EXPECT_NEAR(test::stepMs(graph), 10.4, 1e-6);
        EXPECT_EQ(waitsOfTheHost(graph), 0);
    }
}

TEST(StructuralEdits, WhatElseTheHostWaitsForStays) {
    job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    analysis.facts.strings = {"", "cudaLaunchKernelExC", "cudaStreamWaitEvent", "cudaEventRecord",
                              "cudaStreamSynchronize"};
    EditEffect effect;
    replay::TaskGraph synchronised = stepWithWait(replay::TaskKind::blockingCall, 4, false);
    parseEdit("buckets:mb=400")->apply(synchronised, analysis, effect);
    EXPECT_EQ(waitsOfTheHost(synchronised), 2);
    // More buckets than before fill a queue no less.
    replay::TaskGraph split = stepWithWait(replay::TaskKind::host, 1, false, {8, 24, 24, 32});
    parseEdit("buckets:mb=8")->apply(split, analysis, effect);
    EXPECT_EQ(waitsOfTheHost(split), 2);
}

/// An allocation, say, that waits for all that the device was given.
TEST(StructuralEdits, TheHostWaitsForNoBucketThatItSendsLater) {
    job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    analysis.facts.strings = {"", "cudaLaunchKernelExC", "cudaStreamWaitEvent", "cudaEventRecord", "cudaMalloc"};
    replay::TaskGraph graph = stepWithWait(replay::TaskKind::blockingCall, 4, true);
    EditEffect effect;
    // 8 | 48: what it waited for travels with what is made behind it. It waits for the first 8, until 4.4.
    parseEdit("buckets:mb=400")->apply(graph, analysis, effect);
    EXPECT_NEAR(test::stepMs(graph), 10.4, 1e-6);
    EXPECT_EQ(waitsOfTheHost(graph), 2);
}

/// A copy on the stream that computes, in front of the last kernel of backward, waits for the second bucket.
TEST(StructuralEdits, NoWorkWaitsForABucketWhoseGradientsAreMadeBehindIt) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    replay::TaskGraph graph = stepWithWait(replay::TaskKind::copy, 0, true);
    EXPECT_NEAR(test::stepMs(graph), 10.8, 1e-6);
    EditEffect effect;
    // 8 | 48: it waits for the first 8 alone. The rest leaves behind the last kernel, at 6.
    parseEdit("buckets:mb=400")->apply(graph, analysis, effect);
    EXPECT_NEAR(test::stepMs(graph), 10.4, 1e-6);
}

/// The host records events behind each bucket: they are in the lead of what follows.
TEST(StructuralEdits, WhatTheHostDoesBehindABucketGoesWithIt) {
    constexpr uint32_t kLeadNs = 5000, kEventsNs = 2000;
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    constexpr std::array<int64_t, 4> kBuckets{8, 8, 8, 32};
    std::vector<std::vector<replay::ExchangeMember>> buckets(kBuckets.size());
    for (size_t r = 0; r < 2; ++r) {
        const auto kernel = [&](uint32_t key, uint32_t leadNs) {
            const replay::TaskId task = ranks[r].kernel(key, 0.5);
            draft.leadNs(draft.last(ranks[r].host)) = leadNs;
            return task;
        };
        for (int layer = 0; layer < 4; ++layer) kernel(0, kLeadNs);
        for (size_t k = 0; k < kBuckets.size(); ++k) {
            kernel(1, kLeadNs + (k > 0 ? kEventsNs : 0));
            const replay::TaskId after = kernel(2, kLeadNs);
            buckets[k].push_back(ranks[r].communicate(1 + 0.05 * static_cast<double>(kBuckets[k]), after));
        }
        ranks[r].kernel(3, 1, buckets.back()[r].transfer);
        draft.leadNs(draft.last(ranks[r].host)) = kLeadNs + kEventsNs;
        ranks[r].mark(true);
    }
    for (size_t b = 0; b < buckets.size(); ++b)
        test::joinAll(draft, store::Op::allReduce, kBuckets[b] * test::kMebi, buckets[b]);
    replay::TaskGraph graph = *std::move(draft).seal();
    const auto hostNs = [](const replay::TaskGraph& of) {
        int64_t ns = 0;
        for (replay::TaskId task = 0; task < of.size(); ++task)
            if (of.onHost(task)) ns += of.leadNs[task] + of.durationNs[task];
        return ns;
    };
    const int64_t before = hostNs(graph);
    EditEffect effect;
    // 8 | 48: two buckets fewer, on two ranks.
    parseEdit("buckets:mb=400")
        ->apply(graph, test::analysisOf(store::Op::allReduce, facts::CommRole::gradients), effect);
    EXPECT_EQ(hostNs(graph), before - 2 * 2 * kEventsNs);
}

/// Micro-steps without no_sync(), each of `forward` kernels that together take 1 ms, and three of backward, 1 ms and
/// 8 MiB of gradients each, which are sent in its buckets. From the second one on kernels of 0.01 ms add each gradient
/// to those before, if they are `added`.
replay::TaskGraph microSteps(int forward, bool added, const std::vector<std::vector<int64_t>>& bucketMebi) {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::pair<int64_t, std::vector<replay::ExchangeMember>>> sums;
    for (const std::vector<int64_t>& buckets : bucketMebi)
        for (int64_t mebi : buckets) sums.push_back({mebi, {}});
    for (test::Rank& rank : ranks) {
        replay::ExchangeMember last;
        size_t sum = 0;
        for (size_t micro = 0; micro < bucketMebi.size(); ++micro) {
            for (int i = 0; i < forward; ++i) rank.kernel(0, 1.0 / forward);
            const size_t pieces = bucketMebi[micro].size();
            for (size_t k = 0; k < 3; ++k) {
                replay::TaskId after = rank.kernel(1, 1);
                if (added && micro > 0) after = rank.kernel(2, 0.01);
                if (pieces == 1 && k < 2) continue;
                const int64_t mebi = sums[sum].first;
                last = rank.communicate(1 + 0.05 * static_cast<double>(mebi), after);
                sums[sum++].second.push_back(last);
            }
        }
        rank.kernel(3, 1, last.transfer);
        rank.mark(true);
    }
    for (const auto& [mebi, members] : sums) test::joinAll(draft, store::Op::allReduce, mebi * test::kMebi, members);
    return *std::move(draft).seal();
}

std::vector<int64_t> mebiOf(const replay::TaskGraph& graph) {
    std::vector<int64_t> mebi;
    for (const replay::Exchange& exchange : graph.exchanges)
        if (exchange.members > 0) mebi.push_back(exchange.bytes / test::kMebi);
    return mebi;
}

TEST(StructuralEdits, TheFirstMicroStepAddsItsGradientsToNone) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    const std::vector<std::vector<int64_t>> buckets(4, {8, 8, 8});
    const auto reducedOnce = [&](int forward, bool added) {
        replay::TaskGraph graph = microSteps(forward, added, buckets);
        EditEffect effect;
        parseEdit("reduce-once:micro-steps=4")->apply(graph, analysis, effect);
        return mebiOf(graph);
    };
    const std::vector<int64_t> once{8, 8, 8};
    EXPECT_EQ(reducedOnce(12, false), once);
    EXPECT_EQ(reducedOnce(12, true), once) << "15 kernels, then 18 each";
    EXPECT_THROW(reducedOnce(1, true), EditError) << "4 kernels, then 7 each: more than an addition for each gradient";
}

TEST(StructuralEdits, NoBucketHoldsGradientsOfTwoMicroSteps) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    // As DDP's first micro-step: all in one.
    replay::TaskGraph graph = microSteps(1, false, {{24}, {8, 8, 8}, {8, 8, 8}, {8, 8, 8}});
    EditEffect effect;
    parseEdit("buckets:mb=400")->apply(graph, analysis, effect);
    for (int64_t mebi : mebiOf(graph)) EXPECT_LE(mebi, 24);
    EXPECT_EQ(mebiOf(graph).size(), 8U);
}

TEST(StructuralEdits, OverlapSendsBucketsDuringTheBackwardPass) {
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    const replay::TaskGraph graph = test::ddpStep(true, {14, 14, 14, 14});
    // All at 6: four times 1.7, then the optimizer.
    EXPECT_NEAR(test::stepMs(graph), 13.8, 1e-6);
    // Gradients by time, 14 MiB per kernel: ready at 3, 4, 5, 6: the network is busy from 3 on.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("overlap"), graph, analysis), 10.8, 1e-6);
    EXPECT_THROW(test::stepMsWith(*parseEdit("overlap"), test::ddpStep(false), analysis), EditError);
}

/// Three layers forward, a loss, and three backward, 4.7 ms; then buckets of 8 and 32 MiB, 4 ms, and an update of 1 ms.
/// `computeStream`: the buckets travel on it.
replay::TaskGraph lateBuckets(bool computeStream) {
    replay::GraphDraft draft;
    std::vector<replay::ExchangeMember> small, large;
    for (int number : {0, 1}) {
        test::Rank rank(draft, number);
        if (computeStream) rank.network = rank.compute;
        for (int layer = 0; layer < 3; ++layer) rank.kernel(0, 0.5);
        rank.kernel(5, 0.3);  // of the loss
        // Of three layers two kernels each; the last one's adds to nothing, and so has one more kernel.
        replay::TaskId last = replay::kNoTask;
        for (int layer = 0; layer < 3; ++layer) {
            rank.kernel(1, 0.5);
            last = rank.kernel(2, 0.5);
            if (layer == 0) last = rank.kernel(6, 0.2);
        }
        small.push_back(rank.communicate(1.4, last));
        large.push_back(rank.communicate(2.6, last));
        rank.kernel(3, 1, large.back().transfer);
        rank.mark(true);
    }
    test::joinAll(draft, store::Op::allReduce, 8 * test::kMebi, small);
    test::joinAll(draft, store::Op::allReduce, 32 * test::kMebi, large);
    return *std::move(draft).seal();
}

TEST(StructuralEdits, ABackwardPassThatAllBucketsWaitForBeginsWhereKernelsOfForwardEnd) {
    const replay::TaskGraph graph = lateBuckets(false);
    EXPECT_NEAR(test::stepMs(graph), 10, 1e-6);
    // From 1.8 ms on there are gradients: the first bucket is hidden.
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    EXPECT_LT(test::stepMsWith(*parseEdit("overlap"), graph, analysis), 9);
}

TEST(StructuralEdits, BucketsOnTheComputeStreamGetOneOfTheirOwnWhereTheyAreToOverlap) {
    const replay::TaskGraph graph = lateBuckets(true);
    EXPECT_NEAR(test::stepMs(graph), 10, 1e-6);
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    const double beside = test::stepMsWith(*parseEdit("overlap"), lateBuckets(false), analysis);
    EXPECT_NEAR(test::stepMsWith(*parseEdit("overlap"), graph, analysis), beside, 1e-6);
    EXPECT_GE(test::stepMsWith(*parseEdit("buckets:mb=32"), graph, analysis), 9.9);
}

/// As DeepSpeed without "overlap_comm".
TEST(StructuralEdits, BucketsThatStopTheBackwardPassGetAStreamOfTheirOwn) {
    replay::GraphDraft draft;
    std::vector<std::vector<replay::ExchangeMember>> buckets(3);
    for (int number : {0, 1}) {
        test::Rank rank(draft, number);
        rank.network = rank.compute;
        for (int layer = 0; layer < 3; ++layer) rank.kernel(0, 0.5);
        for (size_t layer = 0; layer < 3; ++layer)
            buckets[layer].push_back(rank.communicate(layer < 2 ? 0.8 : 1, rank.kernel(1, 1)));
        rank.kernel(3, 1);
        rank.mark(true);
    }
    for (size_t layer = 0; layer < 3; ++layer)
        test::joinAll(draft, store::Op::allReduce, (layer < 2 ? 8 : 12) * test::kMebi, buckets[layer]);
    const replay::TaskGraph graph = *std::move(draft).seal();
    EXPECT_NEAR(test::stepMs(graph), 8.1, 1e-6);
    // Backward is over at 4.5: the last bucket alone is seen.
    const job::Analysis analysis = test::analysisOf(store::Op::allReduce, facts::CommRole::gradients);
    EXPECT_NEAR(test::stepMsWith(*parseEdit("overlap"), graph, analysis), 6.5, 1e-6);
}

/// ZeRO-2 with one bucket: an update of 1 ms, the parameters gathered (24 MiB, 2.4 ms), four kernels forward and four
/// backward of 1 ms, 24 MiB of gradients reduced, 1 ms more.
replay::TaskGraph oneBucketStep() {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<replay::ExchangeMember> gather, reduce;
    for (test::Rank& rank : ranks) {
        const replay::TaskId update = rank.kernel(3, 1);
        gather.push_back(rank.communicate(2.4, update));
        for (int layer = 0; layer < 4; ++layer)
            rank.kernel(0, 1, layer == 0 ? gather.back().transfer : replay::kNoTask);
        replay::TaskId last = replay::kNoTask;
        for (int layer = 0; layer < 4; ++layer) last = rank.kernel(1, 1);
        reduce.push_back(rank.communicate(2.4, last));
        rank.kernel(5, 1, reduce.back().transfer);
        rank.mark(true);
    }
    test::joinAll(draft, store::Op::allGather, 24 * test::kMebi, gather);
    test::joinAll(draft, store::Op::reduceScatter, 24 * test::kMebi, reduce);
    return *std::move(draft).seal();
}

/// The same with a gather and a reduction for each of the four layers, all waited for together: by a copy (the loss
/// read back, say) in front of forward, and by the optimizer.
replay::TaskGraph fourBucketStep() {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<replay::ExchangeMember>> gathers(4), reductions(4);
    for (test::Rank& rank : ranks) {
        const replay::TaskId update = rank.kernel(3, 1);
        for (auto& gather : gathers) gather.push_back(rank.communicate(0.6, update));
        draft.addEdge(draft.addTask(test::on(rank.compute, replay::TaskKind::copy), 0), gathers.back().back().transfer,
                      replay::WaitKind::event);
        for (int layer = 0; layer < 4; ++layer) rank.kernel(0, 1);
        replay::TaskId last = replay::kNoTask;
        for (int layer = 0; layer < 4; ++layer) last = rank.kernel(1, 1);
        for (auto& reduce : reductions) reduce.push_back(rank.communicate(0.6, last));
        rank.kernel(5, 1, reductions.back().back().transfer);
        rank.mark(true);
    }
    for (const auto& members : gathers) test::joinAll(draft, store::Op::allGather, 6 * test::kMebi, members);
    for (const auto& members : reductions) test::joinAll(draft, store::Op::reduceScatter, 6 * test::kMebi, members);
    return *std::move(draft).seal();
}

TEST(StructuralEdits, OverlapLetsForwardWaitForEachGatherWhereItIsUsed) {
    job::Analysis analysis = test::analysisOf(store::Op::allGather, facts::CommRole::gradients);
    analysis.layout.uses[test::kGroup][store::Op::reduceScatter] = {facts::CommRole::gradients, 1};
    analysis.peaks = costs::parseLinkPeaks("intra:gbps=100,alpha_us=0.000001");
    analysis.cost = costs::CollectiveCost(analysis.facts, analysis.peaks);
    const replay::TaskGraph graph = fourBucketStep();
    EXPECT_NEAR(test::stepMs(graph), 14.8, 1e-6);
    // Gathers end at 1.6, 2.2, 2.8 and 3.4, in time for the layers at 1.6, 2.6, 3.6 and 4.6. Backward ends at 9.6, the
    // last reduction 0.6 later.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("overlap"), graph, analysis), 11.2, 1e-4);
}

TEST(StructuralEdits, ParametersGatheredInPiecesAreWaitedForWhereTheyAreUsed) {
    job::Analysis analysis = test::analysisOf(store::Op::allGather, facts::CommRole::gradients);
    analysis.layout.uses[test::kGroup][store::Op::reduceScatter] = {facts::CommRole::gradients, 1};
    analysis.peaks = costs::parseLinkPeaks("intra:gbps=100,alpha_us=0.000001");  // time goes with the bytes
    analysis.cost = costs::CollectiveCost(analysis.facts, analysis.peaks);
    const replay::TaskGraph graph = oneBucketStep();
    EXPECT_NEAR(test::stepMs(graph), 14.8, 1e-6);
    // Gradients of 6 MiB per kernel: buckets of 6, 12 and 6, and parameters the other way round. Gathers end
    // at 1.6, 2.8 and 3.4; forward begins at 1.6 and waits for the second piece, which its second kernel needs,
    // until 2.8. Backward ends at 9.8: reductions at 6.8 + 0.6, 8.8 + 1.2, 10 + 0.6.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("buckets:mb=8,overlap=yes"), graph, analysis), 11.6, 1e-4);
    // Without overlap nobody waits for a piece alone: forward begins at 3.4, the last reduction ends at 11.4 + 0.2 +
    // 0.6.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("buckets:mb=8"), graph, analysis), 13.2, 1e-4);
}

TEST(StructuralEdits, BucketsThatAreGatheredTogetherAreUpdatedByOneKernel) {
    job::Analysis analysis = test::analysisOf(store::Op::allGather, facts::CommRole::gradients);
    analysis.layout.uses[test::kGroup][store::Op::reduceScatter] = {facts::CommRole::gradients, 1};
    analysis.peaks = costs::parseLinkPeaks("intra:gbps=100,alpha_us=0.000001");  // time goes with the bytes
    analysis.cost = costs::CollectiveCost(analysis.facts, analysis.peaks);
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<replay::ExchangeMember>> gathers(4);
    std::vector<replay::ExchangeMember> reduce;
    for (test::Rank& rank : ranks) {
        rank.kernel(7, 1);
        for (auto& gather : gathers) gather.push_back(rank.communicate(0.0006, rank.kernel(3, 0.005)));
        for (int layer = 0; layer < 4; ++layer)
            rank.kernel(0, 1, layer == 0 ? gathers.back().back().transfer : replay::kNoTask);
        replay::TaskId last = replay::kNoTask;
        for (int layer = 0; layer < 4; ++layer) last = rank.kernel(1, 1);
        reduce.push_back(rank.communicate(0.0024, last));
        rank.kernel(5, 1, reduce.back().transfer);
        rank.mark(true);
    }
    for (const auto& members : gathers) test::joinAll(draft, store::Op::allGather, 6 * test::kMebi, members);
    test::joinAll(draft, store::Op::reduceScatter, 24 * test::kMebi, reduce);
    const replay::TaskGraph graph = *std::move(draft).seal();
    EXPECT_NEAR(test::stepMs(graph), 1 + 4 * 0.005 + 0.0006 + 8 + 0.0024 + 1, 1e-6);
    // Gathers of 6, 12 and 6 MiB: three updates, each no longer than an empty kernel.
    EXPECT_NEAR(test::stepMsWith(*parseEdit("buckets:mb=8"), graph, analysis), 1 + 3 * 0.005 + 0.0006 + 8 + 0.0006 + 1,
                1e-6);
}

/// Layers of 2 ms, each gathered in 1 ms when it is due.
replay::TaskGraph shardedStep(int layers) {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<replay::ExchangeMember>> gathers(static_cast<size_t>(layers));
    for (test::Rank& rank : ranks) {
        replay::TaskId last = replay::kNoTask;
        for (int layer = 0; layer < layers; ++layer) {
            const replay::ExchangeMember gather = rank.communicate(1, last);
            gathers[static_cast<size_t>(layer)].push_back(gather);
            last = rank.kernel(1, 2, gather.transfer);
        }
        rank.mark(true);
    }
    for (const auto& members : gathers) test::joinAll(draft, store::Op::allGather, 64 * test::kMebi, members);
    return *std::move(draft).seal();
}

TEST(StructuralEdits, PrefetchGathersTheNextLayerWhileThePresentOneComputes) {
    const job::Analysis analysis = test::analysisOf(store::Op::allGather, facts::CommRole::shardedParameters);
    const replay::TaskGraph graph = shardedStep(6);
    EXPECT_DOUBLE_EQ(test::stepMs(graph), 18);
    EXPECT_DOUBLE_EQ(test::stepMsWith(*parseEdit("prefetch:depth=1"), graph, analysis), 13);
    replay::TaskGraph prefetched = graph;
    EditEffect effect;
    parseEdit("prefetch:depth=1")->apply(prefetched, analysis, effect);
    EXPECT_THROW(parseEdit("prefetch:depth=1")->apply(prefetched, analysis, effect), EditError);
    EXPECT_THROW(test::stepMsWith(*parseEdit("prefetch:depth=1"), test::ddpStep(false),
                                  test::analysisOf(store::Op::allReduce, facts::CommRole::gradients)),
                 EditError);
}

/// As FSDP2 does it: a layer's parameters are copied out of the buffer, then the next layer's all-gather is called,
/// which waits for that copy, and then the layer computes.
replay::TaskGraph copiedOutStep(int layers) {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<replay::ExchangeMember>> gathers(static_cast<size_t>(layers));
    for (test::Rank& rank : ranks) {
        replay::ExchangeMember gathered = rank.communicate(1, replay::kNoTask);
        gathers[0].push_back(gathered);
        for (int layer = 0; layer < layers; ++layer) {
            const replay::TaskId launch = rank.call();
            const replay::TaskId copy = draft.addTask(rank.ofStep(rank.compute, replay::TaskKind::copy), 0);
            draft.addEdge(copy, launch, replay::WaitKind::launch, 0, true);
            draft.addEdge(copy, gathered.transfer, replay::WaitKind::event);
            const replay::TaskId copiedOut = rank.kernel(1, 0.1);
            if (layer + 1 < layers) {
                gathered = rank.communicate(1, copiedOut);
                gathers[static_cast<size_t>(layer) + 1].push_back(gathered);
            }
            for (int kernel = 0; kernel < 4; ++kernel) rank.kernel(2, 0.5);
        }
        rank.mark(true);
    }
    for (const auto& members : gathers) test::joinAll(draft, store::Op::allGather, 64 * test::kMebi, members);
    return *std::move(draft).seal();
}

TEST(StructuralEdits, LayersThatAreGatheredWhileTheOneBeforeThemBeginsAreGatheredAhead) {
    const job::Analysis analysis = test::analysisOf(store::Op::allGather, facts::CommRole::shardedParameters);
    const replay::TaskGraph graph = copiedOutStep(6);
    EXPECT_NEAR(test::stepMs(graph), 1 + 6 * 2.1, 1e-9) << "all but the first are hidden";
    try {
        test::stepMsWith(*parseEdit("prefetch:depth=1"), graph, analysis);
        FAIL() << "nothing can be called earlier";
    } catch (const EditError& error) {
        EXPECT_NE(std::string(error.what()).find("gathered 1 ahead already"), std::string::npos) << error.what();
    }
}

/// Backward of sharded layers of 2 ms: each is gathered in 1 ms when it is due, and its gradients are reduced in 2 ms
/// on a stream of their own, in NCCL's order; compute waits for the reduction behind the next layer. `ahead`: the next
/// layer is gathered in front of the present one.
replay::TaskGraph reducedStep(int layers, bool ahead) {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    for (int rank : {0, 1}) ranks.emplace_back(draft, rank);
    std::vector<std::vector<replay::ExchangeMember>> gathers(static_cast<size_t>(layers)),
        reduces(static_cast<size_t>(layers));
    for (test::Rank& rank : ranks) {
        const uint32_t gathering = rank.network, reducing = draft.addLane({rank.rank, false, 100});
        replay::TaskId newest = replay::kNoTask, last = replay::kNoTask;
        const auto communicate = [&](uint32_t lane, double ms, replay::TaskId after) {
            rank.network = lane;
            const replay::ExchangeMember member = rank.communicate(ms, after);
            rank.network = gathering;
            if (newest != replay::kNoTask) draft.addEdge(member.arrival, newest, replay::WaitKind::event);
            newest = member.transfer;
            return member;
        };
        for (size_t layer = 0; layer < gathers.size(); ++layer) {
            for (size_t due = layer; due <= layer + (ahead ? 1 : 0) && due < gathers.size(); ++due)
                if (gathers[due].size() == static_cast<size_t>(rank.rank))
                    gathers[due].push_back(communicate(gathering, 1, last));
            last = rank.kernel(1, 2, gathers[layer].back().transfer);
            reduces[layer].push_back(communicate(reducing, 2, last));
        }
        rank.network = reducing;  // the step ends behind the last reduction
        rank.mark(true);
    }
    for (const auto& members : gathers) test::joinAll(draft, store::Op::allGather, 64 * test::kMebi, members);
    for (const auto& members : reduces) test::joinAll(draft, store::Op::reduceScatter, 64 * test::kMebi, members);
    return *std::move(draft).seal();
}

job::Analysis analysisOfShards() {
    job::Analysis analysis = test::analysisOf(store::Op::allGather, facts::CommRole::shardedParameters);
    analysis.layout.uses[test::kGroup][store::Op::reduceScatter] = {facts::CommRole::shardedParameters, 1};
    return analysis;
}

TEST(StructuralEdits, WhatIsPrefetchedStaysInNcclsOrder) {
    const job::Analysis analysis = analysisOfShards();
    const replay::TaskGraph due = reducedStep(6, false), ahead = reducedStep(6, true);
    // Gather, compute and reduction one after the other: the next gather waits for the reduction before it.
    EXPECT_DOUBLE_EQ(test::stepMs(due), 6 * 5);
    EXPECT_DOUBLE_EQ(test::stepMsWith(*parseEdit("prefetch:depth=1"), due, analysis), test::stepMs(ahead));
}

/// Layers of 1 ms, each gathered in 2 ms when it is due; its gradients are scattered in 2 ms on a stream of their own.
/// NCCL orders them by the host's calls, over both streams.
replay::TaskGraph orderedStep(int layers) {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    std::vector<uint32_t> second;
    for (int rank : {0, 1}) {
        ranks.emplace_back(draft, rank);
        second.push_back(draft.addLane({rank, false, 100 + rank}));
    }
    std::vector<std::vector<replay::ExchangeMember>> gathers(static_cast<size_t>(layers)), reduces = gathers;
    for (test::Rank& rank : ranks) {
        replay::TaskId last = replay::kNoTask;
        for (size_t layer = 0; layer < gathers.size(); ++layer) {
            const replay::ExchangeMember gather = rank.communicate(2, last);
            gathers[layer].push_back(gather);
            const replay::TaskId kernel = rank.kernel(1, 1, gather.transfer);
            std::swap(rank.network, second[static_cast<size_t>(rank.rank)]);
            const replay::ExchangeMember reduce = rank.communicate(2, kernel);
            std::swap(rank.network, second[static_cast<size_t>(rank.rank)]);
            draft.addEdge(reduce.arrival, gather.transfer, replay::WaitKind::event);
            reduces[layer].push_back(reduce);
            last = reduce.transfer;
        }
        rank.kernel(3, 1, last);
        rank.mark(true);
    }
    for (const auto& members : gathers) test::joinAll(draft, store::Op::allGather, 64 * test::kMebi, members);
    for (const auto& members : reduces) test::joinAll(draft, store::Op::reduceScatter, 64 * test::kMebi, members);
    return *std::move(draft).seal();
}

TEST(StructuralEdits, NoPrefetchRunsTwoCollectivesOfACommunicatorAtOnce) {
    job::Analysis analysis = test::analysisOf(store::Op::allGather, facts::CommRole::shardedParameters);
    for (auto& [communicator, uses] : analysis.layout.uses)
        uses[store::Op::reduceScatter] = uses.at(store::Op::allGather);
    const replay::TaskGraph graph = orderedStep(6);
    EXPECT_DOUBLE_EQ(test::stepMs(graph), 6 * (2 + 1 + 2) + 1);
    const double overlappedMs = test::stepMsWith(*parseEdit("overlap"), graph, analysis);
    EXPECT_GE(overlappedMs, 12 * 2 + 1)
        << "twelve collectives of 2 ms, one behind the other, and what waits for the last";
    EXPECT_LT(overlappedMs, 27) << "compute is hidden, but for a layer at the end";
}

/// Two micro-steps, each a kernel of 1 ms, and behind it a reduce-scatter beside an all-gather, 2 ms both, on streams
/// of their own; the next kernel waits for the all-gather.
replay::TaskGraph besideEachOther() {
    replay::GraphDraft draft;
    std::vector<test::Rank> ranks;
    std::vector<uint32_t> second;
    for (int rank : {0, 1}) {
        ranks.emplace_back(draft, rank);
        second.push_back(draft.addLane({rank, false, 100 + rank}));
    }
    std::vector<std::vector<replay::ExchangeMember>> reduces(2), gathers(2);
    for (test::Rank& rank : ranks) {
        replay::TaskId before = replay::kNoTask;
        for (size_t micro : {0, 1}) {
            const replay::TaskId kernel = rank.kernel(1, 1, before);
            reduces[micro].push_back(rank.communicate(2, kernel));
            std::swap(rank.network, second[static_cast<size_t>(rank.rank)]);
            gathers[micro].push_back(rank.communicate(2, kernel));
            std::swap(rank.network, second[static_cast<size_t>(rank.rank)]);
            before = gathers[micro].back().transfer;
        }
        rank.mark(true);
    }
    for (size_t micro : {0, 1}) {
        test::joinAll(draft, store::Op::reduceScatter, 64 * test::kMebi, reduces[micro]);
        test::joinAll(draft, store::Op::allGather, 64 * test::kMebi, gathers[micro]);
    }
    return *std::move(draft).seal();
}

TEST(StructuralEdits, WhatRanBesideAReductionThatGoesHasTheLinksForItself) {
    const job::Analysis analysis = test::analysisOf(store::Op::reduceScatter, facts::CommRole::shardedParameters);
    const replay::TaskGraph graph = besideEachOther();
    EXPECT_DOUBLE_EQ(test::stepMs(graph), 6);
    // Of the first all-gather 1 ms is left; the second one still shares the links.
    EXPECT_DOUBLE_EQ(test::stepMsWith(*parseEdit("reduce-once:micro-steps=2"), graph, analysis), 5);
    replay::TaskGraph changed = graph;
    EditEffect effect;
    effect.outlook = Outlook::dear;
    parseEdit("reduce-once:micro-steps=2")->apply(changed, analysis, effect);
    EXPECT_DOUBLE_EQ(test::stepMs(changed), 6) << "at worst they did not slow each other";
    EXPECT_TRUE(effect.open);
}

}  // namespace
}  // namespace rankscope::edits

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/analyzer/jobs.h"

namespace rankscope::facts {
namespace {

/// Ranks that take turns in compute and collectives; a few lines play a layer.
class Play {
  public:
    explicit Play(int ranks) : m_trace(ranks, ranks), m_now(static_cast<size_t>(ranks), 0), m_starts(m_now) {}

    int group(std::vector<int> ranks) {
        m_members.push_back(ranks);
        return m_trace.communicator(std::move(ranks));
    }
    void compute(double ms, const std::string& name = "gemm") {
        for (size_t r = 0; r < m_now.size(); ++r) {
            const auto ns = static_cast<int64_t>(ms * test::kMs);
            m_trace.kernel(static_cast<int>(r), m_now[r] + 4 * test::kUs, ns, name, 64);
            m_now[r] += 4 * test::kUs + ns;
        }
    }
    /// Compute stands still until it is over.
    void blocking(const std::vector<int>& groups, store::Op op, double bytes) {
        for (int g : groups) {
            const int64_t end = collective(g, op, bytes);
            for (int rank : m_members[static_cast<size_t>(g)]) m_now[static_cast<size_t>(rank)] = end;
        }
    }
    /// Compute goes on.
    void beside(const std::vector<int>& groups, store::Op op, double bytes) {
        for (int g : groups) collective(g, op, bytes);
    }
    /// Every member sends to every other in one kernel.
    void swap(const std::vector<int>& groups, double bytes) {
        for (int g : groups) {
            const std::vector<int>& members = m_members[static_cast<size_t>(g)];
            int64_t end = 0;
            for (int a : members)
                for (int b : members)
                    if (a != b)
                        end = m_trace.message(g, a, b, static_cast<int64_t>(bytes), at(a), at(b), test::kMs / 10);
            for (int rank : members) m_now[static_cast<size_t>(rank)] = end;
        }
    }
    /// The last member sends all that it has to the first one, which keeps its own; or gets it back.
    void toTheFirst(const std::vector<int>& groups, double bytes, bool back) {
        for (int g : groups) {
            const int first = m_members[static_cast<size_t>(g)].front(),
                      last = m_members[static_cast<size_t>(g)].back();
            const int from = back ? first : last, to = back ? last : first;
            m_trace.message(g, first, first, static_cast<int64_t>(bytes), at(first), at(first), test::kMs / 10);
            const int64_t end =
                m_trace.message(g, from, to, static_cast<int64_t>(bytes), at(from), at(to), test::kMs / 10);
            m_now[static_cast<size_t>(first)] = m_now[static_cast<size_t>(last)] = end;
        }
    }
    void endStep() {
        const int64_t end = *std::max_element(m_now.begin(), m_now.end()) + test::kMs / 10;
        for (size_t r = 0; r < m_now.size(); ++r)
            m_trace.step(static_cast<int>(r), m_step, m_starts[r], end - m_starts[r], m_step == 0);
        std::fill(m_now.begin(), m_now.end(), end);
        m_starts = m_now;
        ++m_step;
    }
    Layout layout() const { return m_trace.analyze().layout; }

  private:
    int64_t at(int rank) const { return m_now[static_cast<size_t>(rank)] + 4 * test::kUs; }
    int64_t collective(int g, store::Op op, double bytes) {
        std::vector<int64_t> arrivals;
        for (int rank : m_members[static_cast<size_t>(g)]) arrivals.push_back(at(rank));
        return m_trace.collective(g, op, static_cast<int64_t>(bytes), arrivals, test::kMs / 10);
    }

    test::TraceFixture m_trace;
    std::vector<std::vector<int>> m_members;
    std::vector<int64_t> m_now, m_starts;
    int m_step = 0;
};

constexpr int kSteps = 4;
constexpr int kLayers = 6;
using store::Op;

TEST(Layout, AllReducesThatComputeWaitsForFromTheFirstLayerOnAreTensorParallel) {
    Play play(8);
    const std::vector<int> tp{play.group({0, 1, 2, 3}), play.group({4, 5, 6, 7})};
    const std::vector<int> dp{play.group({0, 4}), play.group({1, 5}), play.group({2, 6}), play.group({3, 7})};
    for (int step = 0; step < kSteps; ++step) {
        for (int half = 0; half < 2 * kLayers; ++half) {
            play.compute(half % 2 == 0 ? 1 : 1.5);
            play.blocking(tp, Op::allReduce, 30e6);
        }
        for (int half = 0; half < 2 * kLayers; ++half) {
            play.compute(half % 2 == 0 ? 3 : 2);
            play.blocking(tp, Op::allReduce, 30e6);
        }
        play.blocking(dp, Op::allReduce, 100e6);
        play.compute(0.5, "adam");
        play.endStep();
    }
    const Layout layout = play.layout();
    EXPECT_EQ(layout.tp, 4);
    EXPECT_EQ(layout.dp, 2);
    EXPECT_EQ(layout.pp, 1);
    EXPECT_EQ(layout.ep, 1);
    EXPECT_EQ(layout.zero, 0);
    EXPECT_FALSE(layout.sp);
    EXPECT_GE(layout.confidence, 0.8);
}

TEST(Layout, TensorParallelBackwardMayOverlapWithTheWeightsGradients) {
    Play play(4);
    const std::vector<int> tp{play.group({0, 1, 2, 3})};
    for (int step = 0; step < kSteps; ++step) {
        for (int half = 0; half < 2 * kLayers; ++half) {
            play.compute(half % 2 == 0 ? 1 : 1.5);
            play.blocking(tp, Op::allReduce, 30e6);
        }
        for (int half = 0; half < 2 * kLayers; ++half) {
            play.compute(half % 2 == 0 ? 1.5 : 1, "input gradient");
            play.beside(tp, Op::allReduce, 30e6);
            play.compute(half % 2 == 0 ? 1.5 : 1, "weight gradient");
        }
        play.endStep();
    }
    EXPECT_EQ(play.layout().tp, 4);
    EXPECT_EQ(play.layout().dp, 1);
}

TEST(Layout, GatherAndScatterPairsThatComputeWaitsForAreSequenceParallel) {
    Play play(4);
    const std::vector<int> tp{play.group({0, 1, 2, 3})};
    for (int step = 0; step < kSteps; ++step) {
        for (int half = 0; half < 4 * kLayers; ++half) {
            play.blocking(tp, Op::allGather, 30e6);
            play.compute(half < 2 * kLayers ? 1 : 2);
            play.blocking(tp, Op::reduceScatter, 30e6);
            play.compute(0.1, "norm");
        }
        play.endStep();
    }
    const Layout layout = play.layout();
    EXPECT_EQ(layout.tp, 4);
    EXPECT_EQ(layout.sp, 4);
    EXPECT_EQ(layout.dp, 1);
    EXPECT_FALSE(layout.zero);
}

TEST(Layout, GradientsReducedOnEachMicroStepAreNotTensorParallel) {
    for (int buckets : {1, 4}) {
        Play play(4);
        const std::vector<int> dp{play.group({0, 1, 2, 3})};
        for (int step = 0; step < kSteps; ++step) {
            for (int micro = 0; micro < 8; ++micro) {
                play.compute(4, "forward");
                for (int bucket = 0; bucket < buckets; ++bucket) {
                    play.compute(8.0 / buckets, "backward");
                    play.blocking(dp, Op::allReduce, 30e6);
                }
            }
            play.endStep();
        }
        const Layout layout = play.layout();
        EXPECT_EQ(layout.tp, 1) << buckets;
        EXPECT_EQ(layout.dp, 4) << buckets;
    }
}

TEST(Layout, OptimizerStatesOfOneShareAreZeroOne) {
    Play play(4);
    const std::vector<int> dp{play.group({0, 1, 2, 3})};
    for (int step = 0; step < kSteps; ++step) {
        play.compute(10, "forward");
        for (int layer = 0; layer < kLayers; ++layer) {
            play.compute(3, "backward");
            play.beside(dp, Op::allReduce, 30e6);
        }
        play.compute(0.5, "adam");
        for (int layer = 0; layer < kLayers; ++layer) play.blocking(dp, Op::allGather, 30e6);
        play.endStep();
    }
    EXPECT_EQ(play.layout().zero, 1);
    EXPECT_EQ(play.layout().dp, 4);
}

TEST(Layout, ScatteredGradientsWithWholeParametersAreZeroTwo) {
    Play play(4);
    const std::vector<int> dp{play.group({0, 1, 2, 3})};
    for (int step = 0; step < kSteps; ++step) {
        play.compute(10, "forward");
        for (int layer = 0; layer < kLayers; ++layer) {
            play.compute(3, "backward");
            play.beside(dp, Op::reduceScatter, 30e6);
        }
        play.compute(0.5, "adam");
        for (int layer = 0; layer < kLayers; ++layer) play.blocking(dp, Op::allGather, 30e6);
        play.endStep();
    }
    EXPECT_EQ(play.layout().zero, 2);
}

TEST(Layout, ShardsInsideAndCopiesAcrossAreHybrid) {
    Play play(8);
    const std::vector<int> inner{play.group({0, 1, 2, 3}), play.group({4, 5, 6, 7})};
    const std::vector<int> outer{play.group({0, 4}), play.group({1, 5}), play.group({2, 6}), play.group({3, 7})};
    for (int step = 0; step < kSteps; ++step) {
        for (int layer = 0; layer < kLayers; ++layer) {
            play.blocking(inner, Op::allGather, 30e6);
            play.compute(2, "forward");
        }
        for (int layer = 0; layer < kLayers; ++layer) {
            play.blocking(inner, Op::allGather, 30e6);
            play.compute(4, "backward");
            play.beside(inner, Op::reduceScatter, 30e6);
            play.beside(outer, Op::allReduce, 7.5e6);
        }
        play.compute(0.5, "adam");
        play.endStep();
    }
    const Layout layout = play.layout();
    EXPECT_EQ(layout.dp, 8);
    EXPECT_EQ(layout.zero, 3);
    EXPECT_EQ(layout.shard, 4);
    EXPECT_EQ(layout.replicate, 2);
}

TEST(Layout, AllToAllsForwardAndBackwardAreExpertsAlsoWhenMadeOfSends) {
    for (bool sends : {false, true}) {
        Play play(8);
        const std::vector<int> ep{play.group({0, 1, 2, 3}), play.group({4, 5, 6, 7})};
        const std::vector<int> dp{play.group({0, 1, 2, 3, 4, 5, 6, 7})};
        for (int step = 0; step < kSteps; ++step) {
            for (int half = 0; half < 4 * kLayers; ++half) {
                play.compute(half < 2 * kLayers ? 1 : 2);
                if (sends)
                    play.swap(ep, 8e6);
                else
                    play.blocking(ep, Op::allToAll, 32e6);
            }
            play.blocking(dp, Op::allReduce, 100e6);
            play.compute(0.5, "adam");
            play.endStep();
        }
        const Layout layout = play.layout();
        EXPECT_EQ(layout.ep, 4) << "sends " << sends;
        EXPECT_EQ(layout.dp, 8) << "sends " << sends;
        EXPECT_EQ(layout.pp, 1) << "sends " << sends;
    }
}

TEST(Layout, AnAllToAllWhoseTokensAllGoToOneRankIsNoPipeline) {
    Play play(4);
    const std::vector<int> ep{play.group({0, 1}), play.group({2, 3})};
    const std::vector<int> dp{play.group({0, 1, 2, 3})};
    for (int step = 0; step < kSteps; ++step) {
        for (int half = 0; half < 4 * kLayers; ++half) {
            play.compute(half < 2 * kLayers ? 1 : 2);
            play.toTheFirst(ep, 8e6, half % 2 == 1);
        }
        play.blocking(dp, Op::allReduce, 100e6);
        play.compute(0.5, "adam");
        play.endStep();
    }
    const Layout layout = play.layout();
    EXPECT_TRUE(layout.pipelines.empty());
    EXPECT_EQ(layout.ep, 2);
    EXPECT_EQ(layout.dp, 4);
    EXPECT_EQ(layout.pp, 1);
}

TEST(Layout, AnInterleavedRingIsAPipelineWithVirtualStages) {
    for (const auto& [stages, chunks, batches, head] : {std::tuple{4, 2, 8, false},
                                                        {4, 3, 16, true},
                                                        {3, 2, 6, false},
                                                        {2, 2, 8, false},
                                                        {2, 2, 8, true},
                                                        {2, 4, 4, false},
                                                        {2, 4, 4, true},
                                                        {8, 2, 8, true}}) {
        test::PipelineJob job;
        job.head = head;
        job.ranks = job.stages = stages;
        job.virtualStages = chunks;
        job.microBatches = batches;
        const Layout layout = test::playPipeline(job).analyze().layout;
        const std::string which = std::to_string(stages) + " stages, " + std::to_string(chunks) + " chunks";
        EXPECT_EQ(layout.pp, stages) << which;
        EXPECT_EQ(layout.schedule, "interleaved") << which;
        EXPECT_EQ(layout.pipelines.at(0).microBatches, batches) << which;
        EXPECT_EQ(layout.pipelines.at(0).virtualStages, chunks) << which;
        EXPECT_EQ(layout.dp, 1) << which;
    }
}

TEST(Layout, AFileWithoutMessagesMayTellItsPipelines) {
    TraceFacts facts;
    EXPECT_TRUE(toldPipelines(facts).empty());
    facts.meta["told_pipelines"] = "1f1b 16;0 2 4;1 3 5";
    const std::vector<Pipeline> told = toldPipelines(facts);
    ASSERT_EQ(told.size(), 2u);
    EXPECT_EQ(told[1].stages, (std::vector<int>{1, 3, 5}));
    EXPECT_EQ(told[1].microBatches, 16);
    EXPECT_EQ(told[1].schedule, "1f1b");
    for (const char* damaged : {"1f1b", "1f1b x;0 1", "1f1b 4;0", ";0 1"}) {
        facts.meta["told_pipelines"] = damaged;
        EXPECT_TRUE(toldPipelines(facts).empty()) << damaged;
    }
}

TEST(Layout, APlainPipelineHasOneVirtualStageAlsoWithTwoStages) {
    for (int stages : {2, 4}) {
        for (int batches : {2, 4, 12}) {
            test::PipelineJob job;
            job.ranks = 2 * stages;
            job.stages = stages;
            job.microBatches = batches;
            const Layout layout = test::playPipeline(job).analyze().layout;
            EXPECT_EQ(layout.pp, stages);
            EXPECT_EQ(layout.dp, 2);
            EXPECT_EQ(layout.pipelines.at(0).microBatches, batches);
            EXPECT_EQ(layout.pipelines.at(0).virtualStages, 1);
            EXPECT_EQ(layout.schedule, "1f1b");
        }
    }
}

TEST(Layout, WithoutCommunicationNothingIsSaid) {
    Play play(4);
    for (int step = 0; step < kSteps; ++step) {
        play.compute(10);
        play.endStep();
    }
    const Layout layout = play.layout();
    EXPECT_FALSE(layout.dp);
    EXPECT_FALSE(layout.tp);
    EXPECT_FALSE(layout.pp);
    EXPECT_EQ(layout.schedule, "unknown");
    EXPECT_EQ(layout.confidence, 0);
}

TEST(Layout, OfCallsAloneNoRoleIsSaid) {
    Play play(4);
    const std::vector<int> world{play.group({0, 1, 2, 3})};
    for (int step = 0; step < kSteps; ++step) {
        for (int bucket = 0; bucket < kLayers; ++bucket) play.blocking(world, Op::allReduce, 30e6);
        play.endStep();
    }
    const Layout layout = play.layout();
    EXPECT_EQ(layout.roles.size(), 0u);
    EXPECT_FALSE(layout.dp);
}

TEST(Layout, AFlagOnItsOwnSaysNothing) {
    Play play(4);
    const std::vector<int> world{play.group({0, 1, 2, 3})};
    for (int step = 0; step < kSteps; ++step) {
        play.compute(10);
        play.blocking(world, Op::allReduce, 4);
        play.endStep();
    }
    EXPECT_FALSE(play.layout().dp);
}

}  // namespace
}  // namespace rankscope::facts

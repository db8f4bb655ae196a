// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/pipeline_chart.h"

#include <gtest/gtest.h>

#include "tests/unit/gui/chart_fixture.h"

namespace rankscope::gui::test {
namespace {

MessagePair sent(std::initializer_list<TimeRange> first, int64_t count = 4) {
    MessagePair pair;
    pair.count = count;
    pair.first = first;
    return pair;
}

TEST(FindPipelines, AChainThatIsAnsweredIsAPipeline) {
    MessagePairs pairs;
    // Ranks 4, 2, 7: activations go from 4 to 7, gradients return.
    pairs[{4, 2}] = sent({{0, 10}});
    pairs[{2, 7}] = sent({{20, 30}});
    pairs[{7, 2}] = sent({{40, 50}});
    pairs[{2, 4}] = sent({{60, 70}});
    EXPECT_EQ(findPipelines(pairs), (std::vector<PipelineChain>{{4, 2, 7}}));
}

TEST(FindPipelines, ARingIsOpenWhereTheFewestMessagesPass) {
    MessagePairs pairs;
    int64_t at = 0;
    for (const auto& [a, b, count] : {std::tuple{0, 1, 8}, {1, 2, 8}, {2, 3, 8}, {3, 0, 4}}) {
        pairs[{a, b}] = sent({{at, at + 5}}, count);
        pairs[{b, a}] = sent({{at + 1'000, at + 1'005}}, count);
        at += 10;
    }
    EXPECT_EQ(findPipelines(pairs), (std::vector<PipelineChain>{{0, 1, 2, 3}}));
}

TEST(FindPipelines, ExchangesRingsInOneDirectionAndStarsAreNone) {
    MessagePairs exchange, ring, star;
    exchange[{0, 1}] = sent({{0, 10}, {100, 110}});
    exchange[{1, 0}] = sent({{2, 11}, {99, 108}});
    for (int rank = 0; rank < 4; ++rank) ring[{rank, (rank + 1) % 4}] = sent({{rank, rank + 1}});
    for (int rank = 1; rank < 4; ++rank) {
        star[{0, rank}] = sent({{rank, rank + 1}});
        star[{rank, 0}] = sent({{100 + rank, 101 + rank}});
    }
    EXPECT_TRUE(findPipelines(exchange).empty());
    EXPECT_TRUE(findPipelines(ring).empty());
    EXPECT_TRUE(findPipelines(star).empty());
    EXPECT_TRUE(findPipelines({}).empty());
}

// Two stages, two micro-batches: on stage 0 F1 F2 . . B1 B2, on stage 1 F1 B1 F2 B2, each pass of 100 ns.
class TwoStages {
  public:
    explicit TwoStages(bool withRanges) : m_ranges(withRanges) {
        job.sql("INSERT INTO string VALUES (1, 'forward'), (2, 'backward'), (3, 'gemm'), (4, 'cudaLaunchKernel')");
        job.sql("INSERT INTO stream (id, rank, context, native_id) VALUES (1, 0, 1, 7), (2, 1, 1, 7)");
        for (const int rank : {0, 1}) job.step(rank, 0, 0, 1'000);
        pass(0, 1, 0);
        pass(0, 1, 100);
        pass(0, 2, 400);
        pass(0, 2, 500);
        pass(1, 1, 100);
        pass(1, 2, 200);
        pass(1, 1, 300);
        pass(1, 2, 400);
        for (const auto& [table, count] : {std::pair{"kernel", 4}, {"api_call", 4}, {"nvtx", 4}})
            for (const int rank : {0, 1})
                job.sql("INSERT INTO extent VALUES ('{}', {}, {}, {}, 200)", table, rank, 1 + 4 * rank,
                        count + 4 * rank);
        job.message(1, 0, 1, 64, 95, 99);
        job.message(2, 0, 1, 64, 196, 199);
        job.message(3, 1, 0, 64, 300, 304);
        job.message(4, 1, 0, 64, 500, 504);
    }
    ChartFixture job{2};

  private:
    // The host launches each pass 1 ns after the one before, long ahead of the GPU.
    void pass(int rank, int nameId, int startNs) {
        const int id = m_id++;
        job.sql(
            "INSERT INTO kernel (id, rank, stream_id, start_ns, dur_ns, name_id, correlation_id, nccl) VALUES ({0}, "
            "{1}, {2}, {3}, 94, 3, {0}, 0)",
            id, rank, rank + 1, startNs);
        job.sql(
            "INSERT INTO api_call (id, rank, thread_id, start_ns, dur_ns, name_id, kind, source, correlation_id) "
            "VALUES ({0}, {1}, 1, {2}, 1, 4, 1, 2, {0})",
            id, rank, 10 * (id % 5) + 1);
        job.sql(
            "INSERT INTO nvtx (id, rank, thread_id, start_ns, dur_ns, kind, name_id, depth) VALUES ({}, {}, 1, {}, 5, "
            "1, {}, 1)",
            id, rank, 10 * (id % 5), m_ranges ? nameId : 3);
    }

    bool m_ranges;
    int m_id = 1;
};

TEST(PipelineChart, KernelsBelongToTheRangeThatLaunchedThem) {
    TwoStages stages(true);
    auto reader = stages.job.reader();
    const PipelineChart chart = PipelineCharts(reader).chart(reader, 0, -1);
    ASSERT_EQ(chart.nothing, "");
    ASSERT_EQ(chart.stages.size(), 2u);
    ASSERT_EQ(chart.stages[0].passes.size(), 4u);
    EXPECT_EQ(chart.range.beginNs, 0);
    EXPECT_EQ(chart.range.endNs, 594);
    EXPECT_EQ(chart.stages[0].passes[2].kind, PassKind::backward);
    EXPECT_EQ(chart.stages[0].passes[2].number, 1);
    EXPECT_EQ(chart.stages[1].passes[2].kind, PassKind::forward);
    EXPECT_EQ(chart.stages[1].passes[2].number, 2);
    EXPECT_EQ(chart.stages[1].passes[2].target.rowId, 7);
    EXPECT_NEAR(chart.stages[0].bubble, (594 - 4 * 94) / 1000.0, 1e-9);  // of the step of 1000, as a finding's share is
    EXPECT_NEAR(chart.bubble, chart.stages[0].bubble, 1e-9);
}

TEST(PipelineChart, WithoutRangesMessagesTellThePassesApart) {
    TwoStages stages(false);
    auto reader = stages.job.reader();
    const PipelineChart chart = PipelineCharts(reader).chart(reader, 5, 99);  // neither exists: the nearest that do
    ASSERT_EQ(chart.stages.size(), 2u);
    EXPECT_EQ(chart.chain, 0u);
    EXPECT_EQ(chart.step, 0);
    EXPECT_NE(chart.note.find("no NVTX"), std::string::npos);
    ASSERT_EQ(chart.stages[0].passes.size(), 3u);  // nothing parts the last two: no message lies between them
    EXPECT_EQ(chart.stages[0].passes[0].kind, PassKind::forward);
    EXPECT_EQ(chart.stages[0].passes[2].kind, PassKind::backward);
    EXPECT_EQ(chart.stages[1].passes[0].kind, PassKind::unknown);
}

TEST(PipelineChart, SaysWhyThereIsNone) {
    ChartFixture silent(2), exchange(2), noSteps(2);
    exchange.message(1, 0, 1, 10, 0, 10);
    exchange.message(2, 1, 0, 10, 0, 10);
    noSteps.message(1, 0, 1, 10, 0, 10);
    noSteps.message(2, 1, 0, 10, 20, 30);
    auto a = silent.reader(), b = exchange.reader(), c = noSteps.reader();
    EXPECT_NE(PipelineCharts(a).chart(a, 0, -1).nothing.find("Not a pipeline job: no rank sends"), std::string::npos);
    EXPECT_NE(PipelineCharts(b).chart(b, 0, -1).nothing.find("Not a pipeline job"), std::string::npos);
    EXPECT_NE(PipelineCharts(c).chart(c, 0, -1).nothing.find("No steps"), std::string::npos);
}

TEST(PipelineChart, SurvivesNonsense) {
    TwoStages stages(true);
    stages.job.sql("UPDATE kernel SET start_ns = 9223372036854775800, dur_ns = 9223372036854775800 WHERE id = 2");
    stages.job.sql("UPDATE kernel SET dur_ns = -50 WHERE id = 3");
    stages.job.sql("UPDATE nvtx SET dur_ns = NULL WHERE id = 1");
    stages.job.sql("UPDATE nvtx SET dur_ns = 9223372036854775807, name_id = 99999 WHERE id = 5");
    stages.job.sql("UPDATE p2p SET send_end_ns = -9223372036854775807 WHERE id = 2");
    auto reader = stages.job.reader();
    const PipelineChart chart = PipelineCharts(reader).chart(reader, 0, -1);
    for (const PipelineStage& stage : chart.stages) {
        EXPECT_GE(stage.bubble, 0);
        EXPECT_LE(stage.bubble, 1);
        for (const PipelinePass& pass : stage.passes) EXPECT_LE(pass.range.beginNs, pass.range.endNs);
    }
}

TEST(PipelineChart, SurvivesDamagedExtents) {
    for (const auto& [first, last] :
         {std::pair{INT64_MIN, INT64_MAX}, {INT64_MAX, INT64_MAX}, {int64_t{-1}, INT64_MIN}}) {
        TwoStages stages(true);
        stages.job.sql("UPDATE extent SET first_id = {}, last_id = {}, max_dur_ns = {}", first + (first == INT64_MIN),
                       last + (last == INT64_MIN), last + (last == INT64_MIN));
        auto reader = stages.job.reader();
        EXPECT_LE(PipelineCharts(reader).chart(reader, 0, -1).stages.size(), 2u);
    }
}

}  // namespace
}  // namespace rankscope::gui::test

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/trial_graph.h"

#include <gtest/gtest.h>

#include "analyzer/edits/what_if.h"
#include "tests/unit/analyzer/small_job.h"

namespace rankscope::edits {
namespace {

TEST(TrialGraph, TheRecordedGraphHasTheScheduleOfTheAnalysis) {
    job::Analysis analysis = test::SmallJob().analysis();
    const replay::ReplayModel& replay = analysis.replay;
    const std::vector<int64_t> endNs = replay.unchanged.endNs;
    EXPECT_EQ(TrialGraph(replay.graph, analysis).schedule().get(), &replay.unchanged);
    analysis.replay.unchanged = {};  // as in a process that only plays
    EXPECT_EQ(TrialGraph(replay.graph, analysis).schedule()->endNs, endNs);
}

TEST(TrialGraph, AChangedGraphHasAScheduleOfItsOwn) {
    const job::Analysis analysis = test::SmallJob().analysis();
    replay::TaskGraph changed = analysis.replay.graph;
    for (int64_t& ns : changed.durationNs) ns *= 2;
    const auto schedule = TrialGraph(changed, analysis).schedule();
    EXPECT_EQ(schedule->endNs, replay::simulate(changed).endNs);
    EXPECT_NE(schedule->endNs, analysis.replay.unchanged.endNs);
}

/// Copies share what they do not change: no change may write through to the graph that others are tried on.
TEST(TrialGraph, NoChangeTouchesTheGraphItIsTriedOn) {
    const job::Analysis analysis = test::SmallJob{.reductions = 3, .readBackNs = 50, .extraNs = 30}.analysis();
    const replay::TaskGraph& graph = analysis.replay.graph;
    const std::vector<int64_t> durations = graph.durationNs;
    const std::vector<uint32_t> leads = graph.leadNs;
    const auto fingerprint = [&] {
        std::vector<int64_t> values;
        for (replay::TaskId task = 0; task < graph.size(); ++task) {
            values.insert(values.end(), {graph.before[task], graph.firstEdge[task], graph.info[task].step});
            for (const replay::Edge& edge : graph.edgesOf(task)) values.insert(values.end(), {edge.from, edge.delayNs});
        }
        for (const replay::Exchange& exchange : graph.exchanges)
            values.insert(values.end(), {exchange.bytes, exchange.members, static_cast<int64_t>(exchange.algorithm)});
        for (const replay::ExchangeMember& member : graph.members)
            values.insert(values.end(), {member.arrival, member.transfer});
        return values;
    };
    const std::vector<int64_t> before = fingerprint();
    const TrialJob unchanged(analysis);
    int possible = 0;
    for (const char* change : {"speed:rank=1,factor=2", "bytes:factor=0.5", "balance", "reduce-once:micro-steps=3",
                               "buckets:mib=1", "algorithm:proto=simple", "no-stalls:cause=sync"}) {
        try {
            unchanged.with(parseEdits({change}), Outlook::expected);
            ++possible;
        } catch (const EditError&) {
        }
        EXPECT_EQ(fingerprint(), before) << change;
        EXPECT_EQ(graph.durationNs, durations) << change;
        EXPECT_EQ(graph.leadNs, leads) << change;
    }
    EXPECT_GE(possible, 3);
}

}  // namespace
}  // namespace rankscope::edits

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/path_stretches.h"

#include <gtest/gtest.h>

#include "tests/unit/analyzer/small_job.h"

namespace rankscope::replay {
namespace {

int64_t lengthOf(const std::vector<PathStretch>& stretches, int rank) {
    int64_t ns = 0;
    for (const PathStretch& stretch : stretches)
        if (stretch.rank == rank) ns += stretch.endNs - stretch.startNs;
    return ns;
}

void expectOneChain(const std::vector<PathStretch>& stretches) {
    ASSERT_FALSE(stretches.empty());
    for (size_t i = 1; i < stretches.size(); ++i) {
        EXPECT_EQ(stretches[i].startNs, stretches[i - 1].endNs);
        EXPECT_NE(stretches[i].rank, stretches[i - 1].rank) << "one stretch";
    }
}

// Rank 1 is the slow one, by half.
TEST(PathStretches, AreAsLongAsTheStepsAndOnTheRankThatIsWaitedFor) {
    const job::Analysis analysis = test::SmallJob().analysis();
    const ReplayModel& replay = analysis.replay;
    const std::vector<PathStretch> stretches =
        pathStretches(replay.graph, replay.unchanged, replay.steps, [](const TaskInfo&) { return std::nullopt; });
    expectOneChain(stretches);
    double all = 0, onSlowRank = 0;
    for (const PathShare& share : criticalPath(replay.graph, replay.unchanged, replay.steps)) {
        all += share.nsPerStep;
        if (share.rank == 1) onSlowRank += share.nsPerStep;
    }
    const auto steps = static_cast<double>(replay.steps.size());
    EXPECT_NEAR(static_cast<double>(stretches.back().endNs - stretches.front().startNs), all * steps, 1);
    EXPECT_NEAR(static_cast<double>(lengthOf(stretches, 1)), onSlowRank * steps, 1);
    EXPECT_GT(lengthOf(stretches, 1), 3 * 150);
}

TEST(PathStretches, LieWhereTheDeviceWorkWasRecorded) {
    constexpr int64_t kLater = 5'000;
    const job::Analysis analysis = test::SmallJob().analysis();
    const ReplayModel& replay = analysis.replay;
    const auto played =
        pathStretches(replay.graph, replay.unchanged, replay.steps, [](const TaskInfo&) { return std::nullopt; });
    const auto recorded = pathStretches(
        replay.graph, replay.unchanged, replay.steps, [&](const TaskInfo& info) -> std::optional<RecordedTime> {
            const auto task = static_cast<size_t>(&info - replay.graph.info.data());
            return RecordedTime{replay.unchanged.startNs[task] + kLater, replay.unchanged.endNs[task] + kLater};
        });
    expectOneChain(recorded);
    ASSERT_EQ(recorded.size(), played.size());
    for (size_t i = 0; i < recorded.size(); ++i) {
        EXPECT_EQ(recorded[i].rank, played[i].rank);
        EXPECT_EQ(recorded[i].startNs, played[i].startNs + kLater);
        EXPECT_EQ(recorded[i].endNs, played[i].endNs + kLater);
    }
}

TEST(PathStretches, OfStepsThatNobodyPlayedThereAreNone) {
    const job::Analysis analysis = test::SmallJob().analysis();
    const ReplayModel& replay = analysis.replay;
    EXPECT_TRUE(
        pathStretches(replay.graph, replay.unchanged, {17}, [](const TaskInfo&) { return std::nullopt; }).empty());
}

}  // namespace
}  // namespace rankscope::replay

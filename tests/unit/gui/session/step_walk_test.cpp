// SPDX-License-Identifier: Apache-2.0
#include "gui/session/step_walk.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

StepInfo stepOf(int32_t rank, int32_t number, int64_t beginNs) {
    StepInfo step;
    step.rank = rank;
    step.step = number;
    step.range = {beginNs, beginNs + 100};
    return step;
}

RunInfo threeSteps() {
    RunInfo run;
    run.steps = {stepOf(0, 4, 1000), stepOf(0, 5, 1100), stepOf(0, 6, 1300), stepOf(3, 4, 2000), stepOf(3, 5, 2100)};
    return run;
}

TEST(StepWalk, GoesFromTheStepInTheMiddleToTheNextAndTheOneBefore) {
    const RunInfo run = threeSteps();
    EXPECT_EQ(stepBeside(run, 0, {1100, 1200}, 1), (TimeRange{1298, 1402}));
    EXPECT_EQ(stepBeside(run, 0, {1100, 1200}, -1), (TimeRange{998, 1102}));
    // Where it has gone it goes on from.
    EXPECT_EQ(stepBeside(run, 0, {998, 1102}, 1), (TimeRange{1098, 1202}));
    EXPECT_EQ(stepBeside(run, 3, {2000, 2100}, 1), (TimeRange{2098, 2202}));
}

TEST(StepWalk, BetweenStepsTheOneBeforeIsTheOneThatIsOver) {
    EXPECT_EQ(stepBeside(threeSteps(), 0, {1240, 1260}, 1), (TimeRange{1298, 1402}));
}

TEST(StepWalk, EndsWithTheRun) {
    const RunInfo run = threeSteps();
    EXPECT_EQ(stepBeside(run, 0, {1300, 1400}, 1), std::nullopt);
    EXPECT_EQ(stepBeside(run, 0, {1000, 1100}, -1), std::nullopt);
    EXPECT_EQ(stepBeside(run, 0, {0, 10}, 1), (TimeRange{998, 1102}));
    EXPECT_EQ(stepBeside(RunInfo(), 0, {0, 10}, 1), std::nullopt);
    EXPECT_EQ(stepBeside(run, 9, {1100, 1200}, 1), (TimeRange{1298, 1402}));  // a rank without steps
}

}  // namespace
}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/session/asked_place.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

constexpr int64_t kMs = 1'000'000;

RunInfo tenSeconds() {
    RunInfo run;
    run.whole = {0, 10'000 * kMs};
    for (int32_t rank : {0, 3})
        for (int step = 4; step < 7; ++step) {
            StepInfo info;
            info.rank = rank;
            info.step = step;
            info.range = {(step * 1000 + rank * 10) * kMs, (step * 1000 + rank * 10 + 500) * kMs};
            run.steps.push_back(info);
        }
    return run;
}

TEST(AskedPlace, ATimeIsInTheMiddleOfAViewThatIsNoWiderThanBefore) {
    EXPECT_EQ(parsePlace("2.27 s", tenSeconds(), 0, {0, 100 * kMs}).value, (TimeRange{2220 * kMs, 2320 * kMs}));
    // Of the whole run a fiftieth.
    EXPECT_EQ(parsePlace("2270 ms", tenSeconds(), 0, {0, 10'000 * kMs}).value, (TimeRange{2170 * kMs, 2370 * kMs}));
}

TEST(AskedPlace, TwoTimesAreTheViewAsReportsWriteThem) {
    for (const char* text : {"2.27 s to 2.72 s", " 2270 ms to 2.72 s ", "2.27 s .. 2.72 s"})
        EXPECT_EQ(parsePlace(text, tenSeconds(), 0, {0, kMs}).value, (TimeRange{2270 * kMs, 2720 * kMs})) << text;
}

TEST(AskedPlace, AStepIsTheRanksWithRoomAtItsEnds) {
    EXPECT_EQ(parsePlace("step 5", tenSeconds(), 3, {0, kMs}).value, (TimeRange{5020 * kMs, 5540 * kMs}));
    EXPECT_EQ(parsePlace("step6", tenSeconds(), 1, {0, kMs}).value, (TimeRange{5990 * kMs, 6510 * kMs}))
        << "of a rank without steps the first rank's";
}

TEST(AskedPlace, WhatCannotBeShownIsSaid) {
    const auto wrong = [](const char* text) { return parsePlace(text, tenSeconds(), 0, {0, kMs}).error; };
    EXPECT_EQ(wrong("step 9"), "there is no step 9");
    EXPECT_EQ(wrong("step nine"), "the number of a step is expected, such as step 5");
    EXPECT_EQ(wrong("11 s"), "the run ends at 10.0 s");
    EXPECT_EQ(wrong("3 s to 2 s"), "the second time has to be after the first");
    for (const char* text : {"", "soon", "5", "> 1 ms", "1 s to", "-1 s"})
        EXPECT_TRUE(wrong(text).starts_with("a time with its unit, two times or a step are expected")) << text;
    EXPECT_EQ(parsePlace("step 5", {}, 0, {0, kMs}).error, "this run has no steps");
}

}  // namespace
}  // namespace rankscope::gui

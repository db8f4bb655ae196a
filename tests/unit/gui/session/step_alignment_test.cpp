// SPDX-License-Identifier: Apache-2.0
#include "gui/session/step_alignment.h"

#include <gtest/gtest.h>

namespace rankscope::gui {
namespace {

// Steps of `stepNs` on two ranks from `firstNs` on; the second rank begins a little later.
RunInfo runOf(int64_t firstNs, int64_t stepNs, int32_t firstStep, int32_t steps) {
    RunInfo run;
    for (int32_t rank = 0; rank < 2; ++rank)
        for (int32_t k = 0; k < steps; ++k) {
            const int64_t begin = firstNs + k * stepNs + 3 * rank;
            run.steps.push_back({rank, firstStep + k, {begin, begin + stepNs}, false});
        }
    run.whole = {0, firstNs + steps * stepNs + 100};
    return run;
}

TEST(StepAlignment, TheFirstCommonStepInViewBeginsAtTheSamePlaceAtTheSameScale) {
    const StepAlignment alignment(runOf(50, 1000, 0, 5), runOf(200, 800, 0, 5));
    const TimeRange visible{1900, 3900};  // the first step that begins in it is step 2, at 2050
    const TimeRange across = alignment.across(Side::a, visible);
    EXPECT_EQ(alignment.anchorFor(Side::a, visible).step, 2);
    EXPECT_EQ(across.span(), visible.span());
    EXPECT_EQ(2050 - visible.beginNs, (200 + 2 * 800) - across.beginNs);
    // And back again.
    EXPECT_EQ(alignment.across(Side::b, across), visible);
}

TEST(StepAlignment, InsideAStepItsBeginningIsTheAnchor) {
    const StepAlignment alignment(runOf(50, 1000, 0, 5), runOf(200, 800, 0, 5));
    EXPECT_EQ(alignment.across(Side::a, {1150, 1250}), (TimeRange{200 + 800 + 100, 200 + 800 + 200}));
}

TEST(StepAlignment, SelectedTimeGoesFromStepToStep) {
    const StepAlignment alignment(runOf(50, 1000, 0, 5), runOf(200, 800, 0, 5));
    EXPECT_EQ(alignment.matching(Side::a, TimeRange{1050, 3050}), (TimeRange{1000, 2600}));  // steps 1 and 2
    EXPECT_EQ(alignment.matching(Side::b, TimeRange{1000, 2600}), (TimeRange{1050, 3050}));
    EXPECT_EQ(alignment.matching(Side::a, TimeRange{1300, 1550}),
              (TimeRange{1200, 1400}));  // from a quarter of step 1 to the half
    EXPECT_EQ(alignment.matching(Side::a, TimeRange{1300, 1300}).span(), 1);
    EXPECT_EQ(alignment.matching(Side::a, TimeRange{0, 9000}),
              (TimeRange{0, 4300}));  // all of the one is all of the other
    RunInfo a, b;                     // no steps
    a.whole = {0, 1000};
    b.whole = {70, 500};
    EXPECT_EQ(StepAlignment(a, b).matching(Side::a, TimeRange{10, 20}), (TimeRange{80, 90}));
    EXPECT_EQ(StepAlignment(a, b).matching(Side::a, TimeRange{10, 900}), (TimeRange{80, 500}));
}

TEST(StepAlignment, OnlyStepsThatBothHaveCount) {
    const StepAlignment alignment(runOf(0, 1000, 0, 5), runOf(0, 1000, 3, 5));
    const StepAlignment::Anchor& first = alignment.anchorFor(Side::a, {0, 5000});
    EXPECT_EQ(first.step, 3);
    EXPECT_EQ(first.aNs, 3000);
    EXPECT_EQ(first.bNs, 0);
    EXPECT_EQ(alignment.anchorFor(Side::a, {4000, 9000}).step, 4);
}

TEST(StepAlignment, WithoutStepsTheBeginningsOfTheRunsAreLaidOverEachOther) {
    RunInfo a, b;
    a.whole = {0, 1000};
    b.whole = {70, 500};
    const StepAlignment alignment(a, b);
    EXPECT_EQ(alignment.anchorFor(Side::a, {0, 1000}).step, -1);
    EXPECT_EQ(alignment.across(Side::a, {10, 20}), (TimeRange{80, 90}));
}

TEST(StepAlignment, BothRunsAreWithinReach) {
    const RunInfo a = runOf(50, 1000, 0, 5), b = runOf(200, 800, 0, 5);
    const StepAlignment alignment(a, b);
    const TimeRange fit = alignment.fit(Side::a);
    EXPECT_EQ(fit, (TimeRange{-150, a.whole.endNs}));
    EXPECT_EQ(alignment.across(Side::a, fit), alignment.fit(Side::b));
    for (int64_t begin = 0; begin < 5000; begin += 500) {
        const TimeRange visible{begin, begin + 700}, across = alignment.across(Side::a, visible),
                                                     room = alignment.room(Side::b);
        EXPECT_TRUE(room.beginNs <= across.beginNs && across.endNs <= room.endNs) << begin;
    }
}

TEST(StepAlignment, TimesOfADamagedFileDoNotOverflow) {
    RunInfo a = runOf(0, 10, 0, 2), b = runOf(0, 10, 0, 2);
    a.steps[0].range = {INT64_MIN, INT64_MAX};
    b.steps[0].range = {INT64_MAX, INT64_MAX};
    const StepAlignment alignment(a, b);
    const TimeRange across = alignment.across(Side::a, {0, 10});
    EXPECT_EQ(across.span(), 10);
}

}  // namespace
}  // namespace rankscope::gui

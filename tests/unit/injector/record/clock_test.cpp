// SPDX-License-Identifier: Apache-2.0
#include "injector/record/clock.h"

#include <gtest/gtest.h>

using rankscope::injector::Clock;

namespace {
uint64_t g_virtualNow = 0;
int virtualTime(uint64_t* ns) {
    *ns = g_virtualNow;
    return 0;
}
}  // namespace

TEST(Clock, InAVirtualRunSaysWhatTheFunctionSays) {
    Clock clock;
    clock.startFunction(virtualTime);
    g_virtualNow = 1767225600'000000123;
    EXPECT_EQ(clock.now(), 1767225600'000000123);
    EXPECT_FALSE(clock.recalibrate());
    g_virtualNow += 5;
    EXPECT_EQ(clock.now(), 1767225600'000000128);
}

TEST(Clock, NeverStepsBackWhileItFollowsTheSystemsClock) {
    Clock clock;
    clock.startRealtime();
    int64_t last = clock.now();
    for (int i = 0; i < 100000; ++i) {
        if (i % 1000 == 0 && clock.recalibrate()) last = clock.now();  // somebody set the clock
        const int64_t now = clock.now();
        ASSERT_GE(now, last);
        last = now;
    }
}

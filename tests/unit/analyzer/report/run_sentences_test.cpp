// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/report/sentences.h"

namespace rankscope::report {
namespace {

TEST(RunText, ABoundIsNotBetterThanClocksAreRead) {
    EXPECT_EQ(boundText(0), "under 1 us");
    EXPECT_EQ(boundText(999), "under 1 us");
    EXPECT_EQ(boundText(12'000), "12 us");
}

TEST(RunText, AWindowIsToldByItsStep) {
    Report report;
    report.steps = {{.index = 1, .startNs = 0, .endNs = 10'000'000, .durNs = 10'000'000, .warmUp = false},
                    {.index = 2, .startNs = 10'000'000, .endNs = 20'000'000, .durNs = 10'000'000, .warmUp = false}};
    job::Finding finding;
    finding.windowStartNs = 10'100'000;
    finding.windowEndNs = 20'100'000;
    finding.steps = {1, 2};
    EXPECT_EQ(bestSeenText(report, finding),
              "best seen in step 2, 10.1 ms to 20.1 ms into the recording; 2 analysed steps show it");
    finding.steps = {2};
    EXPECT_EQ(bestSeenText(report, finding),
              "best seen in step 2, 10.1 ms to 20.1 ms into the recording; 1 analysed step shows it");
    report.steps.clear();
    finding.steps.clear();
    EXPECT_EQ(bestSeenText(report, finding), "best seen at 10.1 ms to 20.1 ms into the recording");
    finding.windowStartNs = 6'000'000;
    finding.windowEndNs = 6'001'000;
    EXPECT_EQ(bestSeenText(report, finding), "best seen at 6.00 ms into the recording");
}

TEST(RunText, ALayoutIsToldInWords) {
    facts::Layout layout;
    EXPECT_EQ(layoutText(layout), "unknown");
    layout.dp = 8;
    layout.tp = layout.pp = 1;
    EXPECT_EQ(layoutText(layout), "data parallel, 8 ranks (dp8)");
    layout.zero = 3;
    EXPECT_EQ(layoutText(layout), "data parallel, 8 ranks (dp8), ZeRO-3");
    layout.zero = 2;
    layout.zeroOr = 3;
    EXPECT_EQ(layoutText(layout), "data parallel, 8 ranks (dp8), ZeRO-2 or 3 (parameters stay whole until backward)");
    layout.zeroOr.reset();
    layout.zero = 0;
    layout.dp = 2;
    layout.tp = 4;
    EXPECT_EQ(layoutText(layout), "data parallel 2 x tensor parallel 4 (dp2 tp4)");
    layout.dp = layout.tp = 1;
    layout.pp = 4;
    layout.schedule = "1f1b";
    layout.pipelines.emplace_back().microBatches = 1;
    EXPECT_EQ(layoutText(layout), "pipeline, 4 ranks (dp1 pp4), schedule 1f1b, 1 micro-batch");
    layout.pp = 1;
    layout.pipelines.clear();
    EXPECT_EQ(layoutText(layout), "one rank (dp1)");
}

}  // namespace
}  // namespace rankscope::report

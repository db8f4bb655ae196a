// SPDX-License-Identifier: Apache-2.0
// A comparison as it is read: what is said, and what is not said twice.
#include <gtest/gtest.h>

#include <algorithm>

#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/text/units.h"
#include "tests/unit/analyzer/compare/compared_sides.h"

namespace rankscope::compare {
namespace {

size_t timesIn(const std::string& text, const std::string& words) {
    size_t count = 0;
    for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
    return count;
}

TEST(CompareText, WhatWouldHaveBeenSeenIsPrintedWithEveryVerdict) {
    for (const Change change : {Change(nullptr), Change(slowRank)}) {
        const Comparison c = compareWith(change);
        for (const std::string& text : {renderComparisonText(c, false), renderComparisonMarkdown(c)})
            EXPECT_EQ(timesIn(text, " would have been seen"), 1u) << text;
    }
    const Comparison faster = compareRuns(makeSide(0, slowRank), makeSide(10), {});
    EXPECT_EQ(timesIn(renderComparisonText(faster, false), " would have been seen"), 1u);
}

TEST(CompareText, HowOftenARegressionIsFoundIsSaidWhereItMayBeMissed) {
    StepTimeChange step;
    step.verdict = StepVerdict::notEnoughSamples;
    step.betweenRuns = 0.02;
    step.noiseSource = "runs of both sides";
    step.smallestVisible = 0.07;
    step.detection = Detection{0.05, 0.846, 3, 5};
    EXPECT_EQ(noiseSentence(step),
              "runs of a side differ by 2.0 % (told by the runs of both sides); a regression of 5.0 % is found in 84 "
              "of 100 such comparisons, in 95 with 5 runs of each build in place of 3");
    step.detection->enoughRuns = 0;
    EXPECT_TRUE(noiseSentence(step).ends_with("in 84 of 100 such comparisons")) << "no number of runs is promised";
    step.smallestVisible = 0.04;
    EXPECT_EQ(noiseSentence(step).find("regression"), std::string::npos) << "less would have been seen";
    step.smallestVisible = 0.07;
    step.verdict = StepVerdict::regression;
    EXPECT_EQ(noiseSentence(step).find("a regression of"), std::string::npos) << "it is found";
}

TEST(CompareText, TheVerdictIsSaidOnce) {
    CompareOptions options;
    options.gate.failOn = {"regression", "new-finding"};
    const Comparison c = compareWith(
        [](RunSummary& run) {
            slowRank(run);
            run.findings.push_back(finding("RS301", 20 * kMs));
        },
        options);
    const std::string text = renderComparisonText(c, false);
    EXPECT_EQ(timesIn(text, c.step.reason), 1u) << text;
    EXPECT_NE(text.find("failed   the step time is a regression"), std::string::npos) << text;
    EXPECT_NE(text.find("failed   new finding: RS301"), std::string::npos) << text;
    EXPECT_EQ(c.gate.reasons.front(), c.step.reason) << "programs read it whole";

    const Comparison one = compareRuns({makeRun(0)}, {makeRun(1)}, {});
    EXPECT_EQ(timesIn(renderComparisonText(one, false), one.step.reason), 1u);
    EXPECT_NE(renderComparisonText(one, false).find("notice   the gate cannot tell a regression\n"), std::string::npos);
}

TEST(CompareText, PartsOfAChangeThatIsNoiseAreNotListed) {
    const Comparison same = compareWith(nullptr);
    ASSERT_FALSE(same.attribution.empty()) << "programs have them";
    EXPECT_EQ(renderComparisonText(same, false).find("Where the change is"), std::string::npos);
    EXPECT_EQ(renderComparisonMarkdown(same).find("Where the change is"), std::string::npos);
    EXPECT_NE(renderComparisonText(compareWith(slowRank), false).find("Where the change is"), std::string::npos);
}

TEST(CompareText, NumbersThatMatterAreShownThoughTheyDidNotChange) {
    const std::string text = renderComparisonText(compareWith(nullptr), false);
    for (const char* name : {"throughput", "exposed communication", "parallel efficiency"})
        EXPECT_NE(text.find(name), std::string::npos) << name << "\n" << text;
    EXPECT_NE(text.find("none of "), std::string::npos);
}

TEST(CompareText, ACauseThatIsAFindingSaysWhatToDo) {
    Comparison c = compareWith(nullptr);
    FindingChange finding;
    finding.id = "RS301";
    finding.status = FindingStatus::isNew;
    finding.ranks = {2};
    finding.fix = {"look at rank 2"};
    c.findings = {finding};
    finding.ranks = {3};
    finding.fix = {"look at rank 3", "replace it", "a third thing"};
    c.findings.push_back(finding);
    c.causes = {{"slow_node", "straggler rank", "RS301", "", {3}, 1e6, {}},
                {"other", "more work", "", "", {}, 1e6, {}}};
    EXPECT_EQ(fixOf(c, c.causes[0]).front(), "look at rank 3");
    EXPECT_TRUE(fixOf(c, c.causes[1]).empty());
    c.causes[0].ns = -1e6;
    EXPECT_TRUE(fixOf(c, c.causes[0]).empty()) << "what got faster needs no fix";
    c.causes[0].ns = 1e6;
    for (const std::string& page :
         {renderComparisonText(c, false), renderComparisonMarkdown(c), renderComparisonHtml(c)}) {
        EXPECT_NE(page.find("replace it"), std::string::npos) << page;
    }
}

TEST(CompareText, SaysWhatJobIsCompared) {
    const Comparison c = compareWith(nullptr);
    EXPECT_EQ(jobText(c), "4 ranks, dp 4, H100, NCCL 2.28");
    const Comparison other = compareWith([](RunSummary& run) { run.environment["nccl"] = "2.29"; });
    EXPECT_EQ(jobText(other), "4 ranks, dp 4, H100");
}

TEST(CompareText, WhatIsNotComparedHasNoChange) {
    const Comparison c = compareWith([](RunSummary& run) {
        longerSteps(run, 20 * kMs);
        run.environment["world_size"] = "8";
    });
    const std::string text = renderComparisonMarkdown(c);
    const size_t row = text.find("| throughput |");
    ASSERT_NE(row, std::string::npos) << text;
    const std::string line = text.substr(row, text.find('\n', row) - row);
    EXPECT_NE(line.find("|  | not compared |"), std::string::npos) << line;
    const std::string page = renderComparisonHtml(c);
    EXPECT_EQ(timesIn(page.substr(0, page.find("<script")), "<td data-v=\"incomparable"), 0u)
        << "the reason stands once, above the table";
}

TEST(CompareText, ADiagnosisThatIsOnOneSideOnlyHasNoCostOfNothing) {
    FindingChange row;
    row.now = {1, 1, true, 2 * kMs, std::nullopt};
    EXPECT_EQ(worthText(row), "costs 2 ms a step");
    EXPECT_EQ(worthText(row, row.base), "none");
    row.base = {1, 1, true, kMs, std::nullopt};
    EXPECT_EQ(worthText(row), "costs 1 ms -> 2 ms a step");
    row.now = {};
    EXPECT_EQ(worthText(row), "costs 1 ms a step before");
}

TEST(CompareText, WhatARepairSavesIsNotSaidToBeACost) {
    FindingChange row;
    row.base = {1, 1, true, 9 * kMs, kMs};
    row.now = {1, 1, true, 9 * kMs, 2 * kMs};
    EXPECT_EQ(worthText(row), "its repair saves 1 ms -> 2 ms a step");
    EXPECT_EQ(worthText(row, row.base), "saves 1 ms");
    EXPECT_NE(findingBody(row).find("\nIts repair saves 1 ms"), std::string::npos);
    row.now.savingNs.reset();
    EXPECT_EQ(worthText(row), "costs 9 ms -> 9 ms a step; what its repair saves was not played on the new side");
    EXPECT_EQ(worthText(row, row.base), "costs 9 ms");
    row.base.costNs.reset();
    EXPECT_EQ(worthText(row, row.base), "unknown");
    EXPECT_NE(worthText(row).find("costs unknown -> 9 ms"), std::string::npos);
}

TEST(CompareSentence, ChangesReadAsWhatTheyAre) {
    EXPECT_EQ(metricChangeText(0.914, 0.788, "share"), "-12.6 points");
    EXPECT_EQ(metricChangeText(42e6, 50.7e6, "ns"), "+20.7 %");
    EXPECT_EQ(metricChangeText(144e3, 3.39e6, "ns"), "+2254 %");
    EXPECT_EQ(metricChangeText(5, 5 - 1e-9, "ns"), "0.0 %");
    EXPECT_EQ(metricChangeText(0, 5, "ns"), "from nothing");
    EXPECT_EQ(text::bandwidthText(330e6), "330 MB/s");
    EXPECT_EQ(text::bandwidthText(38.44e9), "38.4 GB/s");
}

TEST(CompareSentence, ThePointIsAsPreciseAsItsInterval) {
    StepTimeChange step;
    step.ratio = 1.2056;
    step.interval = facts::Estimate{1.1975, 1.2056, 1.2138};
    EXPECT_EQ(changeText(step), "20.6 % slower (+19.8 % to +21.4 %)");
    step.ratio = 1.0002;
    step.interval = facts::Estimate{0.999, 1, 1.001};
    EXPECT_EQ(changeText(step), "the same (-0.1 % to +0.1 %)");
}

TEST(ComparePage, ManyRunsAreDrawnAndThoseLeftOutAreSaid) {
    std::vector<RunSummary> base;
    for (int i = 0; i < 250; ++i) {
        base.push_back(makeRun(i));
        base.back().stepsNs.front() += i;  // no run is another to the nanosecond
    }
    const std::string page = renderComparisonHtml(compareRuns(base, makeSide(1000), {}));
    EXPECT_NE(page.find("The last 200 of 250 base runs are drawn"), std::string::npos);
    EXPECT_NE(page.find("base: 200 runs"), std::string::npos);
    EXPECT_LT(timesIn(page, "<circle"), 4000u);
    EXPECT_NE(renderComparisonHtml(compareWith(nullptr)).find(">run0</text>"), std::string::npos)
        << "few runs are named";
}

TEST(CompareBreakdown, RanksAreMatchedByRoleAndRefusedWithTheCategories) {
    const Comparison c = compareWith([](RunSummary& run) {
        slowRank(run);
        for (RoleSummary& role : run.roles) role.rank = 3 - role.rank;  // numbered the other way round
    });
    ASSERT_EQ(c.breakdown.size(), 4u);
    EXPECT_EQ(c.breakdown[1].role, "dp 2");
    EXPECT_NEAR(c.breakdown[1].now->computeNs - c.breakdown[1].base->computeNs, 20 * kMs, 0.3 * kMs);
    const Comparison lost = compareWith([](RunSummary& run) { run.deviceLoss = true; });
    EXPECT_TRUE(lost.breakdown.empty());
    EXPECT_EQ(compareRuns({}, makeSide(0), {}).breakdown.size(), 4u) << "of the new side alone";
}

TEST(CompareOverview, TheTypicalRunThatHasItsTraceStandsForItsSide) {
    auto now = makeSide(10);
    for (size_t i = 0; i < now.size(); ++i) {
        now[i].overview = report::StepOverview{static_cast<int>(i), 0, 90'000'000, {{0, "c", "."}}};
        longerSteps(now[i], i == 2 ? kMs : i == 1 ? 30 * kMs : 0);
    }
    now[2].overview.reset();
    const Comparison c = compareRuns(makeSide(0), now, {});
    EXPECT_FALSE(c.base.overview) << "saved runs have none";
    ASSERT_TRUE(c.now.overview);
    EXPECT_EQ(c.now.overviewRun, "run10") << "run12 is nearer to the middle, but has no trace";
    EXPECT_NE(renderComparisonHtml(c).find("A saved run keeps no timeline"), std::string::npos);
    EXPECT_EQ(renderComparisonHtml(compareWith(nullptr)).find("id=\"overview\""), std::string::npos);
}

TEST(Attribution, KernelsAreThoseOfTheRanksWhereItHappens) {
    // One of many ranks: the mean over all of them hardly moves.
    const Comparison c = compareWith([](RunSummary& run) {
        slowRank(run);
        run.roles[2].work["gemm"].ns += 20 * kMs;
        run.kernels[0].ns += 5 * kMs;
    });
    ASSERT_EQ(c.attribution.at(0).ranks, std::vector<int>{2});
    ASSERT_FALSE(c.attribution.at(0).details.empty());
    EXPECT_EQ(c.attribution.at(0).details.front(), "gemm: 80 ms -> 100 ms a step");
}

}  // namespace
}  // namespace rankscope::compare

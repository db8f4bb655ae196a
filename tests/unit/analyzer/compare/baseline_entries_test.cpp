// SPDX-License-Identifier: Apache-2.0
// What belongs together in a baseline, in which order, and which of its runs count.
#include "analyzer/compare/baseline_entries.h"

#include <gtest/gtest.h>

#include "analyzer/compare/odd_runs.h"
#include "tests/unit/analyzer/compare/compared_sides.h"

namespace rankscope::compare {
namespace {

RunSummary saved(const std::string& label, int64_t order, int64_t start, double factor = 1) {
    RunSummary run = makeRun(1);
    run.name = label + "@" + std::to_string(start);
    run.label = label;
    run.savedOrder = order;
    run.startUnixNs = start;
    for (double& step : run.stepsNs) step *= factor;
    return run;
}

std::vector<std::string> labelsOf(const std::vector<BaselineEntry>& entries) {
    std::vector<std::string> labels;
    for (const BaselineEntry& entry : entries) labels.push_back(entry.label + " x" + std::to_string(entry.size));
    return labels;
}

TEST(BaselineEntries, AreInTheOrderInWhichTheyWereSavedWhateverTheClocksSay) {
    // The machine that recorded b is an hour behind.
    std::vector<RunSummary> runs{saved("a", 1, 5000), saved("b", 2, 1400), saved("c", 3, 5200), saved("b", 2, 1500)};
    sortByTime(runs);
    EXPECT_EQ(labelsOf(entriesOf(runs)), (std::vector<std::string>{"a x1", "b x2", "c x1"}));
}

TEST(BaselineEntries, OfTwoBuildsThatSavedAtOnceEachStaysTogether) {
    std::vector<RunSummary> runs{saved("a", 1, 10), saved("b", 2, 20), saved("c", 2, 21), saved("b", 2, 22),
                                 saved("c", 2, 23)};
    sortByTime(runs);
    EXPECT_EQ(labelsOf(entriesOf(runs)), (std::vector<std::string>{"a x1", "b x2", "c x2"}));
}

TEST(BaselineEntries, OfEarlierVersionsComeByTheClockAndBeforeThoseWithAnOrder) {
    std::vector<RunSummary> runs{saved("new", 1, 5), saved("old", 0, 20), saved("older", 0, 10)};
    sortByTime(runs);
    EXPECT_EQ(labelsOf(entriesOf(runs)), (std::vector<std::string>{"older x1", "old x1", "new x1"}));
}

TEST(BaselineEntries, RunsWithoutALabelBelongTogetherWhenTheyWereSavedTogether) {
    std::vector<RunSummary> runs{saved("", 1, 1), saved("", 1, 2), saved("", 2, 3), saved("", 0, 0), saved("", 0, 0)};
    sortByTime(runs);
    EXPECT_EQ(labelsOf(entriesOf(runs)), (std::vector<std::string>{" x1", " x1", " x2", " x1"}));
}

TEST(OddRuns, AreFarFromTheMiddleAndFewerThanTheOthers) {
    EXPECT_EQ(farOff({0, 0.30, 0.01}, 0.01), std::vector<size_t>{1});
    EXPECT_EQ(farOff({0, -0.30, 0.01}, 0.01), std::vector<size_t>{1});
    EXPECT_TRUE(farOff({0, 0.03, 0.01}, 0.01).empty());
    EXPECT_TRUE(farOff({0, 0.1, 0.2}, 0.01).empty()) << "none is like another";
    EXPECT_TRUE(farOff({0, 0.3}, 0.01).empty()) << "nothing tells which of two is the odd one";
    EXPECT_TRUE(farOff({0, 0, 0.009}, 0.0001).empty()) << "less than what is a change";
}

std::vector<double> oneOfThreeWith(const std::string& diagnosis, double factor, bool inAll = false) {
    std::vector<RunSummary> runs{saved("a", 1, 1), saved("a", 1, 2, factor), saved("a", 1, 3)};
    for (RunSummary& run : runs)
        if (inAll || &run == &runs[1]) run.findings = {finding(diagnosis, 9 * kMs)};
    std::vector<BaselineEntry> entries = entriesOf(runs);
    leaveOutOddRuns(runs, entries);
    return entries.at(0).logs;
}

TEST(OddRuns, ASlowerOneWithAFindingOfItsMachineIsOneWithinTheNoiseToo) {
    EXPECT_EQ(oneOfThreeWith("RS301", 1.04).size(), 2u);
    EXPECT_EQ(oneOfThreeWith("RS301", 1.04, true).size(), 3u) << "all have it";
    EXPECT_EQ(oneOfThreeWith("RS203", 1.04).size(), 3u) << "no other machine cures that";
    EXPECT_EQ(oneOfThreeWith("RS301", 1.00).size(), 3u) << "it costs nothing";
}

TEST(OddRuns, SayWhereTheyAreSlow) {
    RunSummary odd = makeRun(1);
    slowRank(odd);
    const RunSummary usual = makeRun(0), other = makeRun(2);
    const OddRun told = describeOddRun(odd, {&usual, &other}, "new");
    EXPECT_EQ(told.ranks, std::vector<int>{2});
    EXPECT_EQ(told.hosts, std::vector<std::string>{"b"});
    EXPECT_NEAR(told.ratio, 110.0 / 90, 0.01);
    EXPECT_EQ(told.othersNs.size(), 2u);
    odd.findings = {finding("RS301", 20 * kMs)};
    EXPECT_EQ(describeOddRun(odd, {&usual, &other}, "new").diagnosis, "RS301");
}

TEST(OddRuns, ARankThatComputesALittleLongerIsNotWhyARunIsSlow) {
    RunSummary odd = makeRun(1);
    for (double& ns : odd.stepsNs) ns += 30 * kMs;  // of which the ranks' compute shows nothing
    odd.roles[2].computeNs *= 1.03;
    const RunSummary usual = makeRun(0), other = makeRun(2);
    const OddRun told = describeOddRun(odd, {&usual, &other}, "new");
    EXPECT_GT(told.ratio, 1.2);
    EXPECT_TRUE(told.ranks.empty());
}

TEST(OddRuns, OfAnotherBatchTheStepWithoutThemIsAWholeStep) {
    auto now = makeSide(10);
    for (RunSummary& run : now)
        for (double& ns : run.stepsNs) ns *= 7;
    slowRank(now[1]);
    for (double& ns : now[1].stepsNs) ns *= 1.3;
    CompareOptions options;
    options.samples = 7;
    const Comparison c = compareRuns(makeSide(0), now, options);
    ASSERT_TRUE(c.withoutOdd);
    EXPECT_EQ(c.withoutOdd->samples, 7);
    EXPECT_EQ(c.step.samples, 7);
    EXPECT_EQ(c.withoutOdd->verdict, StepVerdict::noChange);
}

TEST(OddRuns, OneOfThreeNewRunsIsUndecided) {
    auto now = makeSide(10);
    slowRank(now[1]);
    const Comparison c = compareRuns(makeSide(0), now, {});
    EXPECT_EQ(c.step.verdict, StepVerdict::undecided);
    EXPECT_EQ(c.gate.conclusion, GateConclusion::undecided);
    ASSERT_TRUE(c.withoutOdd);
    EXPECT_EQ(c.withoutOdd->verdict, StepVerdict::noChange);
    // What holds without it is claimed.
    for (RunSummary& run : now) longerSteps(run, 9 * kMs);
    const Comparison slow = compareRuns(makeSide(0), now, {});
    EXPECT_EQ(slow.step.verdict, StepVerdict::regression);
    EXPECT_NEAR(*slow.step.ratio, 1.1, 0.01);
    // An odd run of the base is no change of anything.
    auto base = makeSide(0);
    slowRank(base[2]);
    const Comparison same = compareRuns(base, makeSide(10), {});
    EXPECT_EQ(same.step.verdict, StepVerdict::noChange);
    ASSERT_EQ(same.oddRuns.size(), 1u);
    EXPECT_EQ(same.oddRuns[0].side, "base");
}

}  // namespace
}  // namespace rankscope::compare

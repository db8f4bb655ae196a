// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_difference.h"

#include <gtest/gtest.h>

#include "analyzer/compare/compare.h"
#include "collector/store/error.h"
#include "tests/unit/gui/small_run.h"

namespace rankscope::gui {
namespace {

using test::SmallRun;

RunDifference differenceOf(const SmallRun& a, const SmallRun& b) {
    return differenceOf(*a.info(), *b.info(), false);
}

// A step of 1 ms becomes one of 1.3 ms, of which the rank waits for its host.
constexpr const char* kLonger =
    "UPDATE step SET dur_ns = 1300000; UPDATE meta SET value = '1300000' WHERE key = 'duration_ns';";

compare::FindingChange foundIn(int baseRuns, int newRuns, const char* id, std::vector<int> ranks) {
    compare::FindingChange finding;
    finding.base.runs = baseRuns;
    finding.now.runs = newRuns;
    finding.id = id;
    finding.ranks = std::move(ranks);
    return finding;
}

FindingInfo finding(const char* diagnosis, const char* verdict, std::vector<int32_t> ranks) {
    FindingInfo finding;
    finding.diagnosis = diagnosis;
    finding.verdict = verdict;
    finding.ranks = std::move(ranks);
    return finding;
}

TEST(RunDifference, SaysWhatCompareSaysWithAAsTheBase) {
    const SmallRun a, b(kLonger);
    const compare::Comparison said = compare::compareRuns({compare::summarizeTrace(a.folder.file())},
                                                          {compare::summarizeTrace(b.folder.file())}, {});
    ASSERT_FALSE(said.causes.empty());
    const std::string head = headText(differenceOf(a, b));
    EXPECT_EQ(head.find(said.step.reason), 0u) << head;
    for (const compare::ChangeCause& cause : said.causes) EXPECT_NE(head.find(cause.text), std::string::npos) << head;
    EXPECT_NE(said.step.reason.find("30 % slower"), std::string::npos) << said.step.reason;
}

TEST(RunDifference, FindingsAreFoundInTheRunsThatHaveThem) {
    compare::Comparison comparison;
    comparison.findings = {foundIn(0, 1, "RS202", {0, 1}), foundIn(1, 0, "RS301", {1}), foundIn(1, 1, "RS301", {0}),
                           foundIn(1, 1, "RS201", {1})};
    RunInfo a, b;
    a.findings = {finding("RS301", "note", {1}), finding("RS301", "found", {0}), finding("RS301", "found", {1}),
                  finding("RS201", "found", {0})};  // the same place in the layout was another rank
    b.findings = {finding("RS201", "found", {1}), finding("RS202", "found", {1, 0}), finding("RS301", "found", {0})};
    const std::vector<FindingPlaces> places = findPlaces(comparison, a, b);
    ASSERT_EQ(places.size(), 4u);
    EXPECT_EQ(places[0].inA, std::nullopt);
    EXPECT_EQ(places[0].inB, 1u);
    EXPECT_EQ(places[1].inA, 2u);
    EXPECT_EQ(places[1].inB, std::nullopt);
    EXPECT_EQ(places[2].inA, 1u);
    EXPECT_EQ(places[2].inB, 2u);
    EXPECT_EQ(places[3].inA, 3u);
    EXPECT_EQ(places[3].inB, 0u);
}

TEST(RunDifference, AKernelLeadsToItsLongestInEachRun) {
    const RunDifference difference = differenceOf(SmallRun(), SmallRun("", "another_gemm"));
    ASSERT_EQ(difference.comparison.kernels.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
        const bool isNew = difference.comparison.kernels[i].name == "another_gemm";
        const KernelPlaces& places = difference.kernels.at(i);
        EXPECT_EQ(isNew ? places.inB : places.inA, (EventLink{EventTable::kernel, 5, 1}));
        EXPECT_EQ((isNew ? places.inA : places.inB).table, EventTable::none);
    }
}

TEST(RunDifference, ARunWithoutAnalysisOrStepsIsSaid) {
    EXPECT_NE(headText(differenceOf(SmallRun(), SmallRun())).find("A is not analysed"), std::string::npos);
    EXPECT_THROW(differenceOf(SmallRun(), SmallRun("DELETE FROM step;")), compare::CompareError);
}

TEST(RunDifference, EndsWhenItIsCancelled) {
    EXPECT_TRUE(differenceOf(*SmallRun().info(), RunInfo(), true).comparison.base.runs.empty());
    std::atomic<int> checks = 0;
    EXPECT_THROW(compare::summarizeTrace(SmallRun().folder.file(), 0,
                                         [&] {
                                             if (++checks == 2) throw checks.load();
                                         }),
                 int)
        << "inside an analysis";
}

TEST(RunDifference, HostileRowsDoNoHarm) {
    const SmallRun sound, hostile(
                              "UPDATE kernel SET dur_ns = 9223372036854775807; UPDATE step SET dur_ns = "
                              "9223372036854775807;");
    try {
        EXPECT_FALSE(headText(differenceOf(sound, hostile)).empty());
    } catch (const store::Error& error) {
        EXPECT_STRNE(error.what(), "");
    }
}

}  // namespace
}  // namespace rankscope::gui

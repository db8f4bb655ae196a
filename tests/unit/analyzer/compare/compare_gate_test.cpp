// SPDX-License-Identifier: Apache-2.0
// Findings of two sides, and what the gate says of a comparison.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyzer/compare/renderers.h"
#include "tests/unit/analyzer/compare/compared_sides.h"

namespace rankscope::compare {
namespace {

FindingStatus statusAfter(std::optional<FindingSummary> before, std::optional<FindingSummary> after) {
    auto base = makeSide(0), now = makeSide(10);
    for (RunSummary& run : base)
        if (before) run.findings.push_back(*before);
    for (RunSummary& run : now)
        if (after) run.findings.push_back(*after);
    return compareRuns(base, now, {}).findings.at(0).status;
}

TEST(CompareFindings, AreNewGoneWorseOrBetter) {
    EXPECT_EQ(statusAfter(std::nullopt, finding("RS301", 9 * kMs)), FindingStatus::isNew);
    EXPECT_EQ(statusAfter(finding("RS301", 9 * kMs), std::nullopt), FindingStatus::gone);
    EXPECT_EQ(statusAfter(finding("RS301", 5 * kMs), finding("RS301", 9 * kMs)), FindingStatus::worse);
    EXPECT_EQ(statusAfter(finding("RS301", 9 * kMs), finding("RS301", 5 * kMs)), FindingStatus::better);
    EXPECT_EQ(statusAfter(finding("RS301", 9 * kMs), finding("RS301", 9.1 * kMs)), FindingStatus::same);
    // 2.9 % of the step is a note, 3.1 % a finding: that is no news.
    EXPECT_EQ(statusAfter(finding("RS301", 2.6 * kMs, "note"), finding("RS301", 2.8 * kMs)), FindingStatus::same);
    // Nor that longer runs made sure what shorter ones left open.
    EXPECT_EQ(statusAfter(finding("RS301", 9 * kMs, "inconclusive"), finding("RS301", 9.1 * kMs)), FindingStatus::same);
    EXPECT_EQ(statusAfter(finding("RS301", 2 * kMs, "inconclusive"), finding("RS301", 9 * kMs)), FindingStatus::isNew);
}

TEST(CompareFindings, WhatIsGoneWasOnRanksOfTheBase) {
    auto base = makeSide(0), now = makeSide(10);
    for (RunSummary& run : base) run.findings.push_back(finding("RS301", 9 * kMs));
    for (RunSummary& run : now)
        for (RoleSummary& role : run.roles) role.rank += 4;  // a larger job: other ranks have the same roles
    const FindingChange gone = compareRuns(base, now, {}).findings.at(0);
    EXPECT_EQ(gone.status, FindingStatus::gone);
    EXPECT_EQ(gone.where, "rank 2 (dp 2)");
}

FindingSummary played(double costNs, double savingNs) {
    FindingSummary row = finding("RS301", costNs, savingNs >= 0.03 * 90 * kMs ? "found" : "note");
    row.savingNs = savingNs;
    row.severity = savingNs / (90 * kMs);
    return row;
}

TEST(CompareFindings, WhatOneSideSavesIsNotHeldAgainstWhatTheOtherCosts) {
    const FindingSummary unplayed = finding("RS301", 9 * kMs);
    EXPECT_EQ(statusAfter(played(9 * kMs, 4 * kMs), unplayed), FindingStatus::same);
    EXPECT_EQ(statusAfter(unplayed, played(9 * kMs, 4 * kMs)), FindingStatus::same);
    EXPECT_EQ(statusAfter(played(9 * kMs, 0), unplayed), FindingStatus::same);
    EXPECT_EQ(statusAfter(unplayed, played(9 * kMs, 0)), FindingStatus::same);
    // As costs, both are over the floor, and one is the larger.
    EXPECT_EQ(statusAfter(played(4 * kMs, 1 * kMs), unplayed), FindingStatus::worse);
    EXPECT_EQ(statusAfter(unplayed, played(4 * kMs, 1 * kMs)), FindingStatus::better);
    EXPECT_EQ(statusAfter(played(1 * kMs, 1 * kMs), unplayed), FindingStatus::isNew);
    // Savings tell where both have them, whatever the costs do.
    EXPECT_EQ(statusAfter(played(9 * kMs, 9 * kMs), played(9 * kMs, 4 * kMs)), FindingStatus::better);
    EXPECT_EQ(statusAfter(played(5 * kMs, 4 * kMs), played(9 * kMs, 4 * kMs)), FindingStatus::same);
    EXPECT_EQ(statusAfter(played(9 * kMs, 0), played(9 * kMs, 9 * kMs)), FindingStatus::isNew);
    EXPECT_EQ(statusAfter(std::nullopt, played(9 * kMs, 9 * kMs)), FindingStatus::isNew);
}

TEST(CompareFindings, ADiagnosisThatAsksForMoreIsHeldAgainstThat) {
    FindingSummary note = played(6 * kMs, 1 * kMs), found = finding("RS301", 12 * kMs);
    EXPECT_EQ(statusAfter(note, found), FindingStatus::worse);
    note.leastShare = found.leastShare = 0.1;
    EXPECT_EQ(statusAfter(note, found), FindingStatus::isNew);
}

TEST(CompareFindings, WhatIsNotKnownIsNeitherWorseNorBetter) {
    FindingSummary unknown = finding("RS301", 0);
    unknown.costNs.reset();
    EXPECT_EQ(statusAfter(unknown, finding("RS301", 9 * kMs)), FindingStatus::same);
    EXPECT_EQ(statusAfter(finding("RS301", 9 * kMs), unknown), FindingStatus::same);
    auto base = makeSide(0), now = makeSide(10);
    for (RunSummary& run : base) run.findings = {unknown};
    for (RunSummary& run : now) run.findings = {played(9 * kMs, 4 * kMs)};
    now[0].findings = {finding("RS301", 9 * kMs)};  // one of three could not be played
    const auto row = nlohmann::json::parse(renderComparisonJson(compareRuns(base, now, {}))).at("findings").at(0);
    EXPECT_EQ(row.at("status"), "same");
    EXPECT_TRUE(row.at("base_cost_ns").is_null());
    EXPECT_NEAR(row.at("new_cost_ns"), 9 * kMs, 1);
    EXPECT_TRUE(row.at("base_saving_ns").is_null());
    EXPECT_TRUE(row.at("new_saving_ns").is_null());
}

TEST(CompareGate, ARunThatCannotBeReplayedHasNoNewFindingsForThat) {
    auto base = makeSide(0), now = makeSide(10);
    for (RunSummary& run : base) run.findings = {played(9 * kMs, 0)};
    for (RunSummary& run : now) run.findings = {finding("RS301", 9 * kMs)};
    CompareOptions options;
    options.gate.failOn = {"new-finding"};
    const Comparison c = compareRuns(base, now, options);
    EXPECT_FALSE(c.gate.failed);
    for (const std::string& text : {renderComparisonText(c), renderComparisonJunit(c), renderComparisonSarif(c)})
        EXPECT_NE(text.find("not played on the new side"), std::string::npos) << text;
}

Comparison gateOn(std::vector<std::string> failOn, std::vector<std::string> allow, bool everywhere = false) {
    auto base = makeSide(0), now = makeSide(10);
    for (RunSummary& run : now) run.findings.push_back(finding("RS301", 9 * kMs));
    if (everywhere)
        for (RunSummary& run : base) run.findings.push_back(finding("RS301", 9 * kMs));
    CompareOptions options;
    options.gate = {std::move(failOn), std::move(allow)};
    return compareRuns(base, now, options);
}

TEST(CompareGate, FailsOnWhatItIsTold) {
    EXPECT_FALSE(gateOn({"regression"}, {}).gate.failed);
    EXPECT_TRUE(gateOn({"regression", "new-finding"}, {}).gate.failed);
    EXPECT_TRUE(gateOn({"RS3*"}, {}).gate.failed);
    EXPECT_TRUE(gateOn({"RS301"}, {}, true).gate.failed);  // found, new or not
    EXPECT_FALSE(gateOn({"new-finding"}, {}, true).gate.failed);
    EXPECT_FALSE(gateOn({"RS2*"}, {}).gate.failed);
    EXPECT_FALSE(gateOn({"new-finding", "never"}, {}).gate.failed);
    const Comparison allowed = gateOn({"new-finding"}, {"RS301"});
    EXPECT_FALSE(allowed.gate.failed);
    EXPECT_EQ(allowed.gate.allowed.size(), 1u);
    EXPECT_TRUE(allowed.findings.at(0).allowed);
}

TEST(CompareGate, SaysTheRegressionThatDoesNotFail) {
    for (const char* failOn : {"never", "RS301", "new-finding"}) {
        CompareOptions options;
        options.gate.failOn = {failOn};
        const Comparison c = compareWith(slowRank, options);
        EXPECT_FALSE(c.gate.failed) << failOn;
        EXPECT_TRUE(isNoticed(c, "regression: 90")) << failOn;
    }
}

TEST(CompareGate, DoesNotJudgeWhatMustNotBeCompared) {
    const Comparison c = compareWith([](RunSummary& run) { run.environment["world_size"] = "8"; });
    EXPECT_FALSE(c.gate.judged);
    for (const std::string& text : {renderComparisonText(c), renderComparisonMarkdown(c), renderComparisonJunit(c),
                                    renderComparisonAnnotations(c), renderComparisonHtml(c)}) {
        EXPECT_NE(text.find("not judged"), std::string::npos) << text;
        EXPECT_EQ(text.find("ate passed"), std::string::npos) << text;
    }
    EXPECT_EQ(nlohmann::json::parse(renderComparisonJson(c)).at("gate").at("judged"), false);
    EXPECT_TRUE(compareWith(nullptr).gate.judged);
}

TEST(CompareGate, FindingsAreJudgedWithoutABaseline) {
    auto now = makeSide(10);
    for (RunSummary& run : now) run.findings.push_back(finding("RS301", 9 * kMs));
    CompareOptions options;
    options.gate.failOn = {"RS301"};
    const Comparison c = compareRuns({}, now, options);
    EXPECT_TRUE(c.gate.failed);
    ASSERT_EQ(c.findings.size(), 1u);
    EXPECT_EQ(c.findings[0].status, FindingStatus::present);
    options.gate.failOn = {"new-finding"};
    EXPECT_FALSE(compareRuns({}, now, options).gate.failed);  // nothing tells that it is new
}

TEST(CompareFindings, ThoseOfAFewNewRunsAreListed) {
    auto now = makeSide(10);
    now[1].findings.push_back(finding("RS301", 9 * kMs));
    CompareOptions options;
    options.gate.failOn = {"RS301"};
    const Comparison c = compareRuns(makeSide(0), now, options);
    ASSERT_EQ(c.findings.size(), 1u);
    EXPECT_EQ(c.findings[0].status, FindingStatus::present);
    EXPECT_NE(renderComparisonText(c).find("in 1 of 3 new runs"), std::string::npos);
    EXPECT_NE(renderComparisonMarkdown(c).find("in 1 of 3 new runs"), std::string::npos);
    EXPECT_TRUE(c.gate.failed);
    options.gate.failOn = {"new-finding"};
    EXPECT_FALSE(compareRuns(makeSide(0), now, options).gate.failed);
}

TEST(CompareGate, KnowsItsWords) {
    EXPECT_EQ(checkFailOn("RS2*"), "");
    EXPECT_EQ(checkFailOn("new-finding"), "");
    EXPECT_NE(checkFailOn("regresion"), "");
    EXPECT_NE(checkAllow("RS999"), "");
    EXPECT_NE(checkAllow("regression"), "");
}

std::vector<FindingSummary> manyFindings(int count) {
    std::vector<FindingSummary> rows;
    for (int i = 0; i < count; ++i) {
        rows.push_back(finding("RS301", 9 * kMs));
        rows.back().roles = {"dp " + std::to_string(i)};
    }
    return rows;
}

TEST(CompareFindings, OfTenThousandTheJsonHasAllAndEveryOtherFormatSaysHowManyItLeavesOut) {
    auto now = makeSide(10);
    for (RunSummary& run : now) run.findings = manyFindings(10'000);
    const Comparison c = compareRuns(makeSide(0), now, {});
    EXPECT_EQ(nlohmann::json::parse(renderComparisonJson(c)).at("findings").size(), 10'000u);
    EXPECT_NE(renderComparisonText(c).find("and 9988 more"), std::string::npos);
    EXPECT_NE(renderComparisonMarkdown(c).find("9960 of 10000 findings are left out"), std::string::npos);
    EXPECT_NE(renderComparisonHtml(c).find("9500 of 10000 findings are left out"), std::string::npos);
    EXPECT_NE(renderComparisonAnnotations(c).find("9991 more of this kind"), std::string::npos);
    for (const std::string& text : {renderComparisonJunit(c), renderComparisonSarif(c)})
        EXPECT_NE(text.find("9000 of 10000 findings are left out"), std::string::npos);
    EXPECT_NE(renderComparisonOpenMetrics(c).find("rankscope_findings{status=\"new\"} 10000\n"), std::string::npos)
        << "counted, all of them";
}

// Three hundred new findings that fail nothing stand before it: a service that reads only its own format must see the
// failure all the same.
TEST(CompareGate, WhatFailsItIsInEveryFormatHoweverManyOthersThereAre) {
    FindingSummary failing = finding("RS203", 1 * kMs);
    failing.title = "the one that fails";
    auto base = makeSide(0), now = makeSide(10);
    for (RunSummary& run : base) run.findings = {failing};
    for (RunSummary& run : now) {
        run.findings = manyFindings(3000);
        run.findings.push_back(failing);
    }
    CompareOptions options;
    options.gate.failOn = {"RS203"};
    const Comparison c = compareRuns(base, now, options);
    ASSERT_TRUE(c.gate.failed);
    EXPECT_NE(renderComparisonJunit(c).find("failures=\"1\""), std::string::npos);
    EXPECT_NE(renderComparisonSarif(c).find("\"level\": \"error\""), std::string::npos);
    EXPECT_NE(renderComparisonAnnotations(c).find("::error title=RS203 the one that fails"), std::string::npos);
    for (const std::string& text : {renderComparisonText(c), renderComparisonMarkdown(c), renderComparisonHtml(c)})
        EXPECT_NE(text.find("the one that fails"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::compare

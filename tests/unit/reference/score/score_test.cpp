// SPDX-License-Identifier: Apache-2.0
#include "reference/score/score.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "reference/score/generator.h"
#include "reference/score/run_report.h"
#include "reference/score/tally.h"
#include "reference/score/verdict.h"

namespace rankscope::score {
namespace {

constexpr const char* kStraggler = R"({"kind": "ddp", "model": {"seq": 1024, "micro_batch": 4}, "parallel": {"dp": 8},
    "faults": [{"kind": "straggler", "rank": 3, "factor": 1.5}], "expect": [{"id": "RS301", "ranks": [3]}], "allow": ["RS304"],
    "fixed": {"faults": []}})";

Scenario straggler() {
    return parseScenario(kStraggler, "s.json");
}

RunReport report(std::vector<Finding> findings, double stepNs = 100e6) {
    RunReport result;
    result.findings = std::move(findings);
    result.medianStepNs = result.meanStepNs = stepNs;
    return result;
}

std::vector<Claim> claims(std::initializer_list<Claim> list) {
    return list;
}

TEST(Verdict, FindingOnTheExpectedRanksIsAHit) {
    const auto score = judge(straggler(), report({{{"RS301", {3}}, 30e6}}), nullptr);
    EXPECT_EQ(score.hits, claims({{"RS301", {3}}}));
    EXPECT_TRUE(score.missed.empty());
    EXPECT_TRUE(score.falseAlarms.empty());
}

TEST(Verdict, WrongRankIsAMissAndAFalseAlarm) {
    const auto score = judge(straggler(), report({{{"RS301", {4}}, 30e6}}), nullptr);
    EXPECT_EQ(score.missed, claims({{"RS301", {3}}}));
    EXPECT_EQ(score.falseAlarms, claims({{"RS301", {4}}}));
    EXPECT_EQ(score.wrongRank, claims({{"RS301", {4}}}));
    EXPECT_FALSE(score.predictedSavingNs);
}

TEST(Verdict, MoreRanksThanExpectedAreWrongRanks) {
    const auto score = judge(straggler(), report({{{"RS301", {3, 4}}, 30e6}}), nullptr);
    EXPECT_EQ(score.wrongRank.size(), 1u);
}

TEST(Verdict, SecondFindingOfTheSameIdElsewhereIsAFalseAlarmOnly) {
    const auto score = judge(straggler(), report({{{"RS301", {3}}, 30e6}, {{"RS301", {5}}, 4e6}}), nullptr);
    EXPECT_EQ(score.hits.size(), 1u);
    EXPECT_EQ(score.falseAlarms, claims({{"RS301", {5}}}));
    EXPECT_TRUE(score.wrongRank.empty());
}

TEST(Verdict, AllowedFindingCountsNeitherWay) {
    const auto score = judge(straggler(), report({{{"RS301", {3}}, 30e6}, {{"RS304", {3}}, 4e6}}), nullptr);
    EXPECT_TRUE(score.falseAlarms.empty());
    EXPECT_EQ(score.hits.size(), 1u);
    EXPECT_DOUBLE_EQ(*score.predictedSavingNs, 30e6);
}

TEST(Verdict, ExpectationWithoutRanksTakesEveryFindingOfItsId) {
    const Scenario scenario = parseScenario(R"({"expect": [{"id": "RS201"}]})", "s.json");
    const auto score = judge(scenario, report({{{"RS201", {0}}, 2e6}, {{"RS201", {1}}, 3e6}}), nullptr);
    EXPECT_EQ(score.hits.size(), 1u);
    EXPECT_TRUE(score.falseAlarms.empty());
    EXPECT_DOUBLE_EQ(*score.predictedSavingNs, 5e6);
}

TEST(Verdict, AFindingThatLeavesOpenWhichOfTwoItIsIsMetByEitherAndByNoOther) {
    const auto expecting = [](const char* id) {
        return parseScenario(std::string(R"({"expect": [{"id": ")") + id + R"(", "ranks": [3]}]})", "s.json");
    };
    const RunReport open = report({{{"RS301/RS304", {3}}, {}}});
    for (const char* id : {"RS301", "RS304"}) {
        EXPECT_EQ(judge(expecting(id), open, nullptr).hits, claims({{id, {3}}}));
        EXPECT_TRUE(judge(expecting(id), open, nullptr).falseAlarms.empty());
    }
    EXPECT_EQ(judge(expecting("RS302"), open, nullptr).missed.size(), 1u);
    EXPECT_EQ(judge(expecting("RS302"), open, nullptr).falseAlarms, claims({{"RS301/RS304", {3}}}));
}

TEST(Verdict, AnythingOnAHealthyJobIsAFalseAlarm) {
    const auto score = judge(parseScenario("{}", "s.json"), report({{{"RS203", {0, 1}}, 5e6}}), nullptr);
    EXPECT_EQ(score.falseAlarms.size(), 1u);
}

TEST(Verdict, SavingIsMeasuredAtEqualTokens) {
    const Scenario scenario = parseScenario(
        R"({"kind": "pp", "parallel": {"dp": 1, "pp": 4, "micro_batches": 4}, "expect": [{"id": "RS101"}], "fixed": {"parallel": {"micro_batches": 40}}})",
        "s.json");
    const RunReport fixed = report({}, 600e6);  // ten times the tokens: 60 ms for as many as before
    const auto score = judge(scenario, report({{{"RS101", {0, 1, 2, 3}}, 45e6}}), &fixed);
    EXPECT_DOUBLE_EQ(*score.measuredSavingNs, 40e6);
    EXPECT_DOUBLE_EQ(*score.savingError(), 0.05);
}

TEST(Verdict, GeneratedFaultIsDemandedByWhatItCosts) {
    Scenario scenario = straggler();
    scenario.decidedByCost = true;
    const RunReport cheap = report({}, 99e6), between = report({}, 97e6), dear = report({}, 90e6);
    EXPECT_EQ(judge(scenario, report({}), &dear).missed.size(), 1u);
    EXPECT_TRUE(judge(scenario, report({}), &between).missed.empty());
    EXPECT_TRUE(judge(scenario, report({{{"RS301", {3}}, 3e6}}), &between).falseAlarms.empty());
    EXPECT_TRUE(judge(scenario, report({}), &cheap).missed.empty());
    EXPECT_EQ(judge(scenario, report({{{"RS301", {3}}, 3e6}}), &cheap).falseAlarms.size(), 1u);
}

TEST(Verdict, WhatTheWorldCostsIsNoFalseAlarm) {
    const std::vector<Finding> findings{{{"RS203", {0, 1}}, {}, 0.12}, {{"RS304", {0}}, {}, 0.05}};
    const auto judged = [&](double idealStepNs) {
        ScenarioScore score = judge(parseScenario("{}", "s.json"), report(findings), nullptr);
        judgeWorld(findings, idealStepNs, score);
        return score;
    };
    // In the ideal world the step is a ninth shorter: what the finding says.
    EXPECT_EQ(judged(89e6).falseAlarms, claims({{"RS304", {0}}}));
    EXPECT_EQ(judged(89e6).ofTheWorld, claims({{"RS203", {0, 1}}}));
    // The world costs less than that, or nothing.
    EXPECT_EQ(judged(95e6).falseAlarms.size(), 2u);
    EXPECT_EQ(judged(100e6).falseAlarms.size(), 2u);
}

TEST(Verdict, AWorldIsNoSlowLink) {
    const std::vector<Finding> findings{{{"RS204", {0, 1}}, {}, 0.12}};
    ScenarioScore score = judge(parseScenario("{}", "s.json"), report(findings), nullptr);
    judgeWorld(findings, 89e6, score);  // the ideal world is as much faster as the finding says
    EXPECT_EQ(score.falseAlarms, claims({{"RS204", {0, 1}}}));
    EXPECT_TRUE(score.ofTheWorld.empty());
}

TEST(Verdict, WhatCostsNothingInADrawnWorldIsNotDemanded) {
    Scenario scenario = straggler();
    const RunReport faulty = report({}), cheap = report({}, 99e6);
    EXPECT_EQ(judge(scenario, faulty, &cheap).missed.size(), 1u);
    setWorld(scenario, 0);
    EXPECT_FALSE(scenario.drawnWorld);
    setWorld(scenario, 3);
    EXPECT_TRUE(judge(scenario, faulty, &cheap).missed.empty());
    const RunReport dear = report({}, 90e6);
    EXPECT_EQ(judge(scenario, faulty, &dear).missed.size(), 1u);
    EXPECT_EQ(judge(scenario, faulty, nullptr).missed.size(), 1u);
}

TEST(Verdict, AFindingWhoseAdviceGainedIsRightThoughTheTwinDidNot) {
    Scenario scenario = parseScenario(R"({"expect": [{"id": "RS201"}]})", "s.json");
    setWorld(scenario, 3);
    const std::vector<Finding> findings{{{"RS201", {0, 1}}, {}, 0.12}, {{"RS304", {0}}, {}, 0.05}};
    const RunReport twin = report({}, 101e6);
    const auto judged = [&](const std::vector<std::string>& repaired, double gainNs) {
        ScenarioScore score = judge(scenario, report(findings), &twin);
        EXPECT_EQ(score.falseAlarms.size(), 2u);
        FollowedAdvice advice;
        advice.findings = repaired;
        advice.gainNs = gainNs;
        judgeFollowed(scenario, advice, score);
        return score;
    };
    EXPECT_EQ(judged({"RS201"}, 10e6).falseAlarms, claims({{"RS304", {0}}}));
    EXPECT_EQ(judged({"RS201"}, 10e6).hits.size(), 1u);
    EXPECT_EQ(judged({"RS201"}, 3e6).falseAlarms.size(), 1u);
    EXPECT_TRUE(judged({"RS201"}, 3e6).hits.empty());
    EXPECT_EQ(judged({"RS201"}, 1e6).falseAlarms.size(), 2u);
    EXPECT_EQ(judged({"RS201", "RS203"}, 10e6).falseAlarms.size(), 2u) << "which of the two gained is not known";
    EXPECT_EQ(judged({"RS304"}, 10e6).falseAlarms.size(), 2u) << "was not planted";
}

TEST(ScenarioFile, WhatIsWrongIsNamed) {
    EXPECT_THROW(parseScenario("{", "broken.json"), ScenarioFileError);
    EXPECT_THROW(parseScenario("[]", "list.json"), ScenarioFileError);
    EXPECT_THROW(parseScenario(R"({"expect": [{"ranks": [1]}]})", "no-id.json"), ScenarioFileError);
    try {
        parseScenario(R"({"expect": [{"id": "RS301", "ranks": "3"}]})", "ranks.json");
        FAIL();
    } catch (const ScenarioFileError& error) {
        EXPECT_NE(std::string(error.what()).find("ranks.json: 'expect'"), std::string::npos) << error.what();
    }
}

TEST(RunReportFile, InconclusiveVerdictsAndNotesAreNoFindingsAndWarmUpIsNoStep) {
    const auto file =
        std::filesystem::temp_directory_path() / ("rankscope-score-report-" + std::to_string(getpid()) + ".json");
    std::ofstream(file)
        << R"({"steps": [{"start_ns": 0, "dur_ns": 900, "warm_up": true}, {"start_ns": 900, "dur_ns": 130},
        {"start_ns": 1000, "dur_ns": 130}, {"start_ns": 1110, "dur_ns": 400}], "breakdown": [],
        "findings": [{"id": "RS301", "ranks": [1], "verdict": "inconclusive", "saving_ns_per_step": 5},
                     {"id": "RS202", "ranks": [2, 0], "verdict": "found", "saving_ns_per_step": null}],
        "notes": [{"id": "RS201", "ranks": [1], "verdict": "found"}], "replay": {"error": 0.01}})";
    const RunReport read = readReport(file);
    std::filesystem::remove(file);
    ASSERT_EQ(read.findings.size(), 1u);
    EXPECT_EQ(read.findings[0].claim, (Claim{"RS202", {0, 2}}));
    EXPECT_FALSE(read.findings[0].savingNs);
    EXPECT_DOUBLE_EQ(read.medianStepNs, 110);
    EXPECT_DOUBLE_EQ(*read.replayError, 0.01);
}

ScenarioScore atLevel(int level, bool found) {
    ScenarioScore score;
    score.strength = PlantedStrength{"straggler", "RS301", level, "factor " + std::to_string(level)};
    score.expected = {{"RS301", {1}}};
    (found ? score.hits : score.missed) = score.expected;
    return score;
}

TEST(Tally, CountsAddUp) {
    ScenarioScore wrong;
    wrong.expected = wrong.missed = {{"RS301", {3}}};
    wrong.falseAlarms = wrong.wrongRank = {{"RS301", {4}}};
    const std::array scores = {atLevel(0, true), wrong, ScenarioScore{}};
    const Tally tally = addUp(scores);
    EXPECT_DOUBLE_EQ(tally.total.precision(), 0.5);
    EXPECT_DOUBLE_EQ(tally.total.recall(), 0.5);
    EXPECT_DOUBLE_EQ(tally.total.f1(), 0.5);
    EXPECT_EQ(tally.byDiagnosis.at("RS301").counts.wrongRank, 1);
    EXPECT_EQ(tally.healthy, 1);
}

TEST(Tally, DetectionLimitIsTheWeakestLevelBelowWhichSeedsAreMissed) {
    // Level 1 is found in all seeds, but level 2 above it is not.
    const std::array scores = {atLevel(0, false), atLevel(1, true), atLevel(2, true),
                               atLevel(2, false), atLevel(3, true), atLevel(4, true)};
    const auto& limits = addUp(scores).byDiagnosis.at("RS301").detectionLimits;
    ASSERT_EQ(limits.size(), 1u);
    EXPECT_EQ(limits[0].strength.level, 3);
}

constexpr const char* kTable = R"({"noise": [0, 0.01, 0.05], "steps": [6, 8], "healthy_seeds": 2, "fault_seeds": 3,
    "jobs": {"pp-4": {"job": {"kind": "pp", "cluster": {"nodes": 2, "ranks_per_node": 4}, "parallel": {"dp": 2, "pp": 4}}, "sizes": {"/model/layers": [8, 16]}}},
    "faults": [{"name": "slow_node", "jobs": ["pp-4"], "plant": {"kind": "slow_node", "node": "$node"}, "strengths": [{"factor": 1.1}, {"factor": 1.5}],
                "expect": {"id": "RS302", "ranks": "$node_ranks"}},
               {"name": "few", "jobs": ["pp-4"], "plant": {"kind": "few_micro_batches"}, "expect": {"id": "RS101"}, "fixed": {"parallel": {"micro_batches": 64}},
                "strengths": [{"with": {"parallel": {"micro_batches": 40}}, "text": "M 40", "demand": "never"}]}]})";

TEST(Generator, MakesTheSameScenariosEachTime) {
    const auto first = generate(kTable, "table"), second = generate(kTable, "table");
    ASSERT_EQ(first.size(), 2u + 2u * 3u + 3u);
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].json, second[i].json);
}

TEST(Generator, AnotherDrawHasOtherScenarios) {
    std::set<std::string> names;
    for (int draw : {0, 1, 7})
        for (const Scenario& scenario : generate(kTable, "table", draw))
            EXPECT_TRUE(names.insert(scenario.name).second) << scenario.name;
}

TEST(Generator, StrengthsOfOneSeedDifferInNothingElse) {
    const auto scenarios = generate(kTable, "table");
    auto weak = nlohmann::json::parse(scenarios[2].json), strong = nlohmann::json::parse(scenarios[5].json);
    EXPECT_EQ(weak["faults"][0]["factor"], 1.1);
    EXPECT_EQ(strong["faults"][0]["factor"], 1.5);
    for (auto* document : {&weak, &strong}) {
        document->erase("name");
        (*document)["faults"][0].erase("factor");
    }
    EXPECT_EQ(weak, strong);
}

TEST(Generator, PlacesAreWhatTheExpectationNames) {
    for (const Scenario& scenario : generate(kTable, "table")) {
        if (scenario.expect.empty() || scenario.expect[0].id != "RS302") continue;
        const int node = nlohmann::json::parse(scenario.json)["faults"][0]["node"];
        const std::vector<int> ranks = node == 0 ? std::vector{0, 1, 2, 3} : std::vector{4, 5, 6, 7};
        EXPECT_EQ(scenario.expect[0].ranks, ranks);
        EXPECT_TRUE(scenario.decidedByCost);
    }
}

TEST(Generator, WhatTheScheduleExplainsIsDemandedByNobody) {
    const Scenario scenario = generate(kTable, "table").back();
    EXPECT_TRUE(scenario.expect.empty());
    EXPECT_TRUE(scenario.allow.empty());
    EXPECT_FALSE(scenario.decidedByCost);
    EXPECT_EQ(scenario.strength->diagnosis, "RS101");
}

TEST(Requirement, GatesOnBothShares) {
    Scoreboard board;
    board.tally.total = {.truePositives = 9, .falseAlarms = 0, .missed = 1};
    EXPECT_TRUE(meets(board, parseRequirement("precision=1,recall=0.9")));
    EXPECT_FALSE(meets(board, parseRequirement("recall=0.95")));
    EXPECT_THROW(parseRequirement("recall"), ScoreError);
    EXPECT_THROW(parseRequirement("recall=2"), ScoreError);
    EXPECT_THROW(parseRequirement("f1=1"), ScoreError);
}

TEST(Requirement, GatesOnPromisesThatWereKept) {
    Scoreboard board;
    EXPECT_TRUE(meets(board, parseRequirement("kept=1"))) << "none was made";
    board.tally.promises = 10;
    board.tally.promisesKept = 9;
    EXPECT_TRUE(meets(board, parseRequirement("kept=0.9")));
    EXPECT_FALSE(meets(board, parseRequirement("kept=0.95")));
}

}  // namespace
}  // namespace rankscope::score

// SPDX-License-Identifier: Apache-2.0
// Candidates as they are written, and what repeated runs say about them.
#include "analyzer/recommend/tune.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyzer/facts/statistics.h"
#include "collector/store/error.h"

namespace rankscope::recommend {
namespace {

TEST(StudentT, IsThatOfTheTables) {
    EXPECT_NEAR(facts::studentTwoSided(0.95, 1), 12.706, 0.001);
    EXPECT_NEAR(facts::studentTwoSided(0.95, 2), 4.303, 0.001);
    EXPECT_NEAR(facts::studentTwoSided(0.95, 4), 2.776, 0.001);
    EXPECT_NEAR(facts::studentTwoSided(0.99, 9), 3.250, 0.001);
    EXPECT_NEAR(facts::studentTwoSided(0.9, 30), 1.697, 0.001);
    EXPECT_NEAR(facts::studentTwoSided(0.95, 1000), 1.962, 0.001);
    EXPECT_NEAR(facts::studentTwoSided(0.9975, 1), 254.6, 0.1);
}

// --- verdicts ---

std::vector<TuneRun> runs(std::vector<double> stepMs, int firstRound = 1) {
    std::vector<TuneRun> list;
    for (double ms : stepMs) {
        TuneRun run;
        run.round = firstRound++;
        run.stepNs = ms * 1e6;
        run.steps = 10;
        list.push_back(run);
    }
    return list;
}

TuneResult measured(std::vector<double> standardMs, std::vector<std::vector<double>> candidatesMs) {
    TuneResult result;
    result.standard = runs(standardMs);
    for (size_t i = 0; i < candidatesMs.size(); ++i) {
        MeasuredCandidate candidate;
        candidate.candidate.name = "candidate " + std::to_string(i);
        candidate.runs = runs(candidatesMs[i]);
        result.candidates.push_back(candidate);
    }
    judge(result);
    return result;
}

TEST(TuneVerdict, AGainBeyondItsNoiseWins) {
    const TuneResult result = measured({100, 102, 99, 101, 100}, {{90, 91, 90, 92, 90}, {80, 82, 79, 81, 80}});
    EXPECT_EQ(result.candidates[0].verdict, TuneVerdict::helps);
    EXPECT_EQ(result.candidates[1].verdict, TuneVerdict::helps);
    EXPECT_EQ(result.winner, std::optional<size_t>(1));
    EXPECT_DOUBLE_EQ(result.candidates[1].gain->gainNs.expected, 20e6);
    EXPECT_EQ(result.candidates[1].gain->rounds, 5);
    EXPECT_DOUBLE_EQ(result.stepNs, 100e6);
}

TEST(TuneVerdict, AGainInsideItsNoiseKeepsTheDefault) {
    const TuneResult result = measured({100, 110, 95, 105, 99}, {{99, 98, 104, 96, 103}});
    EXPECT_GT(result.candidates[0].gain->gainNs.expected, 0);
    EXPECT_LT(result.candidates[0].gain->gainNs.low, 0);
    EXPECT_EQ(result.candidates[0].verdict, TuneVerdict::noDifference);
    EXPECT_FALSE(result.winner);
}

TEST(TuneVerdict, WhatDriftsFromRoundToRoundHitsBothAlike) {
    // Every round is 10 ms slower than the one before, more than what is gained.
    const TuneResult result = measured({100, 110, 120, 130, 140}, {{97, 107.1, 116.9, 127, 137}});
    EXPECT_EQ(result.candidates[0].verdict, TuneVerdict::helps);
    EXPECT_NEAR(result.candidates[0].gain->gainNs.expected, 3e6, 1);
}

TEST(TuneVerdict, AGainTooSmallToMatterKeepsTheDefault) {
    EXPECT_EQ(measured({100, 100, 100}, {{99.6, 99.6, 99.6}}).candidates[0].verdict, TuneVerdict::noDifference);
    EXPECT_EQ(measured({100, 100, 100}, {{99.4, 99.4, 99.4}}).candidates[0].verdict, TuneVerdict::helps);
}

TEST(TuneVerdict, ALossThatRoundsToNothingIsNone) {
    EXPECT_EQ(measured({100, 100, 100}, {{100.01, 100.01, 100.01}}).candidates[0].verdict, TuneVerdict::noDifference);
    EXPECT_EQ(measured({100, 100, 100}, {{100.3, 100.3, 100.3}}).candidates[0].verdict, TuneVerdict::slower);
}

TEST(TuneVerdict, TheMoreCandidatesTheSurerEachMustBe) {
    const std::vector<double> standard = {100, 100, 100, 100}, slightlyBetter = {98.4, 99.5, 98.8, 99.1};
    EXPECT_EQ(measured(standard, {slightlyBetter}).candidates[0].verdict, TuneVerdict::helps);
    const TuneResult several =
        measured(standard, {slightlyBetter, {101, 99, 100, 100}, {100, 101, 99, 100}, {100, 100, 101, 99}});
    EXPECT_EQ(several.candidates[0].verdict, TuneVerdict::noDifference);
    EXPECT_DOUBLE_EQ(intervalConfidence(several.rules, 4), 0.9875);
}

TEST(TuneVerdict, SlowerFailedAndHardlyMeasuredCandidatesAreToldApart) {
    TuneResult result = measured({100, 101, 100}, {{120, 121, 120}, {50}, {}, {80, 80, 80}});
    result.candidates[3].failure = "the job died by signal 11";
    judge(result);
    EXPECT_EQ(result.candidates[0].verdict, TuneVerdict::slower);
    EXPECT_EQ(result.candidates[1].verdict, TuneVerdict::tooFewRounds);
    EXPECT_EQ(result.candidates[2].verdict, TuneVerdict::tooFewRounds);
    EXPECT_EQ(result.candidates[3].verdict, TuneVerdict::failed);
    EXPECT_FALSE(result.winner);
}

TEST(TuneVerdict, OnlyRoundsInWhichBothRanAreCompared) {
    const auto gain = pairedGain(runs({100, 200, 300}), runs({190, 290, 390}, 2), 0.95);
    ASSERT_TRUE(gain);
    EXPECT_EQ(gain->rounds, 2);
    EXPECT_DOUBLE_EQ(gain->gainNs.expected, 10e6);
    EXPECT_FALSE(pairedGain(runs({100, 200}), runs({190, 290}, 2), 0.95));
}

// --- candidates ---

std::string causeOf(const std::string& text) {
    try {
        parseCandidate(text);
    } catch (const store::Error& error) {
        return error.cause();
    }
    return "";
}

TEST(TuneCandidate, CommasInsideValuesAreToldFromThoseBetweenSettings) {
    const TuneCandidate candidate =
        parseCandidate(" NCCL_ALGO=allreduce:tree,ring;allgather:ring,NCCL_PROTO=^LL,LL128,EMPTY= ");
    EXPECT_EQ(candidate.environment,
              (std::map<std::string, std::optional<std::string>>{
                  {"NCCL_ALGO", "allreduce:tree,ring;allgather:ring"}, {"NCCL_PROTO", "^LL,LL128"}, {"EMPTY", ""}}));
    EXPECT_EQ(
        shellLines(candidate.environment),
        "export EMPTY=''\nexport NCCL_ALGO='allreduce:tree,ring;allgather:ring'\nexport NCCL_PROTO='^LL,LL128'\n");
    EXPECT_EQ(shellLines(parseCandidate("A=it's").environment), "export A='it'\\''s'\n");
}

TEST(TuneCandidate, WhatIsNoSettingIsRefused) {
    EXPECT_EQ(causeOf(""), "is empty");
    EXPECT_EQ(causeOf("ring"), "'ring' is no setting");
    EXPECT_EQ(causeOf("=ring"), "'=ring' is no setting");
    EXPECT_EQ(causeOf("NCCL ALGO=ring"), "'NCCL ALGO=ring' is no setting");
    EXPECT_EQ(causeOf("A=1,A=2"), "A is set twice");
    EXPECT_EQ(causeOf("A=1,NCCL_TUNER_PLUGIN=x"), "NCCL_TUNER_PLUGIN is set by Rankscope itself");
    EXPECT_EQ(causeOf("RANKSCOPE_DIR=/x"), "RANKSCOPE_DIR is set by Rankscope itself");
}

TEST(TuneCandidate, AFileHoldsOnePerLine) {
    std::vector<std::string> leftOut;
    const auto candidates = parseCandidates("c.txt", "# first\nNCCL_ALGO=ring\n\n  NCCL_PROTO=ll\r\n", leftOut);
    ASSERT_EQ(candidates.size(), 2u);
    EXPECT_EQ(candidates[1].name, "NCCL_PROTO=ll");
    EXPECT_TRUE(parseCandidates("c.txt", "\n", leftOut).empty());
    try {
        parseCandidates("c.txt", "A=1\nnothing\n", leftOut);
        FAIL();
    } catch (const store::Error& error) {
        EXPECT_EQ(error.file(), "c.txt, line 2");
    }
}

TEST(TuneCandidate, RecommendationsAreCandidates) {
    std::vector<std::string> leftOut;
    const auto candidates = parseCandidates("advice.json", R"({"schema": "rankscope.recommend/1", "recommendations": [
        {"title": "Let NCCL choose", "env": {"NCCL_ALGO": null, "NCCL_PROTO": "ll"}, "tuner_csv": [], "predicted_saving_ns": 2000, "interval_ns": [1000, 3000]},
        {"title": "Rows", "env": {}, "tuner_csv": [{"collective": "allreduce", "min_bytes": 0, "max_bytes": 9, "algorithm": "tree", "protocol": "ll", "nodes": 2, "ranks": 8},
                                                   "allgather,0,-1,ring,ll,-1,-1,-1"]},
        {"title": "Buckets", "env": {}, "tuner_csv": [], "ddp": {"bucket_cap_mb": "25"}}]})",
                                            leftOut);
    ASSERT_EQ(candidates.size(), 2u);
    EXPECT_EQ(shellLines(candidates[0].environment), "unset NCCL_ALGO\nexport NCCL_PROTO='ll'\n");
    EXPECT_EQ(candidates[0].predictedSavingNs, std::optional<double>(2000));
    EXPECT_EQ(candidates[0].predictedIntervalNs, (std::optional<std::pair<double, double>>({1000, 3000})));
    ASSERT_EQ(candidates[1].tunerRows.size(), 2u);
    EXPECT_EQ(formatTunerRow(candidates[1].tunerRows[0]), "allreduce,0,9,tree,ll,-1,2,8");
    EXPECT_EQ(leftOut, std::vector<std::string>{"Buckets"});
}

TEST(TuneCandidate, WrongJsonIsRefusedWithItsPlace) {
    std::vector<std::string> leftOut;
    for (const char* text :
         {"{", "{}", "[1]", R"([{"env": []}])", R"([{"env": {"A": 1}}])", R"([{"env": {"A B": "1"}}])",
          R"([{"env": {"LD_PRELOAD": "x"}}])", R"([{"tuner_csv": {}}])", R"([{"tuner_csv": [5]}])",
          R"([{"tuner_csv": ["allgather,0,1,tree,ll,-1,-1,-1"]}])",
          R"([{"tuner_csv": [{"collective": "allreduce"}]}])"}) {
        try {
            parseCandidates("x.json", text, leftOut);
            ADD_FAILURE() << text;
        } catch (const store::Error& error) {
            EXPECT_EQ(error.file().rfind("x.json", 0), 0u) << text;
            EXPECT_FALSE(error.cause().empty()) << text;
        }
    }
}

TEST(TuneCandidate, WhatIsOfNoKnownKindIsLeftOut) {
    std::vector<std::string> leftOut;
    const auto candidates =
        parseCandidates("x.json", R"([{"kind": 1, "env": {"A": "1"}}, {"kind": [], "env": {"B": "1"}},
        {"kind": "code", "env": {"C": "1"}}, {"kind": "setting", "env": {"D": "1"}}])",
                        leftOut);
    ASSERT_EQ(candidates.size(), 1u);
    EXPECT_TRUE(candidates[0].environment.contains("D"));
}

TEST(TuneCandidate, JsonThatIsNestedWithoutEndIsRefused) {
    std::vector<std::string> leftOut;
    const std::string deep =
        R"({"recommendations": )" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
    EXPECT_THROW(parseCandidates("x.json", deep, leftOut), store::Error);
}

// --- reports ---

TEST(TuneReport, JsonHoldsGainPredictionAndWhatIsKept) {
    TuneReport report;
    report.name = "t";
    report.result = measured({100, 100, 100}, {{90, 90, 90}, {120, 120, 120}});
    report.result.candidates[0].candidate = parseCandidate("NCCL_ALGO=ring");
    report.result.candidates[0].candidate.predictedSavingNs = 8e6;
    const auto json = nlohmann::json::parse(renderTuneJson(report));
    EXPECT_EQ(json["schema"], "rankscope.tune/1");
    EXPECT_EQ(json["winner"], "NCCL_ALGO=ring");
    EXPECT_EQ(json["keep_default"], false);
    const auto& candidate = json["candidates"][0];
    EXPECT_EQ(candidate["verdict"], "helps");
    EXPECT_EQ(candidate["gain_ns"], 10'000'000);
    EXPECT_EQ(candidate["env"]["NCCL_ALGO"], "ring");
    EXPECT_NEAR(candidate["prediction_error_share"].get<double>(), 0.02, 1e-12);
    EXPECT_EQ(json["candidates"][1]["verdict"], "slower");
    EXPECT_TRUE(json["candidates"][1]["predicted_saving_ns"].is_null());
}

TEST(TuneReport, TextSaysWhatToKeep) {
    TuneReport report;
    report.name = "t";
    report.result = measured({100, 100, 100}, {{90, 90, 90}});
    EXPECT_NE(renderTuneText(report).find("Keep: candidate 0\n"), std::string::npos);
    report.result = measured({100, 100, 100}, {{100, 100, 100}});
    EXPECT_NE(renderTuneText(report).find("Keep the default"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::recommend

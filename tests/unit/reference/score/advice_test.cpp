// SPDX-License-Identifier: Apache-2.0
#include "reference/score/advice.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/score/tally.h"
#include "reference/score/verdict.h"

namespace rankscope::score {
namespace {

using nlohmann::json;

constexpr const char* kJob = R"({"kind": "framework", "expect": [{"id": "RS202"}], "fixed": {"faults": []},
    "follow": {"ddp.bucket_cap_mb": {"framework": {"arguments": {"--bucket-mb": "$", "--no-overlap": null}}},
               "job.micro_batches": {"framework": {"arguments": {"--micro-batches": "$"}, "tokens": "$*2048"}},
               "deepspeed.zero_optimization.reduce_bucket_size": {"framework": {"arguments": {"--bucket-mb": "$*0.5"}}}},
    "framework": {"script": "train.py", "tokens": 4096, "environment": {"NCCL_PROTO": "LL", "NCCL_ALGO": "tree"},
                  "arguments": {"--no-overlap": true, "--micro-batches": 2}}})";

json setting(const char* area, double saving, json settings, const char* certainty = "recommended") {
    json one = {{"kind", "setting"},           {"area", area},
                {"certainty", certainty},      {"env", json::object()},
                {"tuner_csv", json::array()},  {"ddp", json::object()},
                {"fsdp", json::object()},      {"job", json::object()},
                {"deepspeed", json::object()}, {"accelerate", json::object()}};
    one.update(settings);
    one["predicted_saving_ns"] = saving;
    one["interval_ns"] = {saving - 1, saving + 1};
    one["alone"] = nullptr;
    one["findings"] = {"RS202"};
    return one;
}

const json kBuckets = {{"ddp", {{"bucket_cap_mb", "25"}, {"static_graph", "True"}}}};
const json kMicroBatches = {{"job", {{"micro_batches", "12"}}}};

class ReadAdvice : public testing::Test {
  protected:
    Advice read(const json& recommendations, const json& together = nullptr, const std::string& job = kJob) {
        const auto file = std::filesystem::path(testing::TempDir()) /
                          (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".json");
        std::ofstream(file) << json{{"recommendations", recommendations}, {"together", together}};
        const Advice advice = readAdvice(file, parseScenario(job, "job.json"));
        std::filesystem::remove(file);
        return advice;
    }
    static json frameworkOf(const Advice& advice) { return json::parse(advice.scenario.json)["framework"]; }
};

TEST_F(ReadAdvice, ASettingIsMadeByWhatTheScenarioHasForIt) {
    const Advice advice = read(json::array({setting("buckets", 70, kBuckets)}));
    EXPECT_EQ(advice.followed, std::vector<std::string>{"buckets"});
    EXPECT_EQ(advice.findings, std::vector<std::string>{"RS202"});
    EXPECT_TRUE(advice.isRecommended);
    EXPECT_DOUBLE_EQ(advice.promise.expected, 70);
    EXPECT_DOUBLE_EQ(advice.promise.low, 69);
    EXPECT_EQ(frameworkOf(advice)["arguments"], (json{{"--bucket-mb", 25}, {"--micro-batches", 2}}));
    EXPECT_FALSE(advice.scenario.hasFixed);
    EXPECT_FALSE(json::parse(advice.scenario.json).contains("expect"));
}

TEST_F(ReadAdvice, AShareOfWhatIsSetNowIsMade) {
    json job = json::parse(kJob);
    job["follow"]["job.micro_batch_size"] = json{{"framework", {{"arguments", {{"--micro-batch", "$*4"}}}}}};
    const auto sizeOf = [&](const char* advised) {
        const json halved = {{"job", {{"micro_batch_size", advised}}}};
        return frameworkOf(read(json::array({setting("micro_batches", 70, halved)}), nullptr,
                                job.dump()))["arguments"]["--micro-batch"];
    };
    EXPECT_EQ(sizeOf("1/2 of today's"), 2);
    EXPECT_EQ(sizeOf("1/4 of today's"), 1);
    EXPECT_EQ(sizeOf("3/8 of today's"), 1.5);
    for (const char* none : {"1/0 of today's", "-1/2 of today's", "half of today's", "1/2"})
        EXPECT_THROW(sizeOf(none), ScenarioFileError) << none;
}

TEST_F(ReadAdvice, WhatOfASettingCountsIsInProportion) {
    const Advice advice = read(json::array({setting("micro_batches", 70, kMicroBatches)}));
    EXPECT_EQ(frameworkOf(advice)["tokens"], 12 * 2048);
    EXPECT_DOUBLE_EQ(advice.scenario.tokens, 12 * 2048);
    const json deepspeed = {{"deepspeed", {{"zero_optimization.reduce_bucket_size", "30"}}}};
    EXPECT_EQ(frameworkOf(read(json::array({setting("buckets", 70, deepspeed)})))["arguments"]["--bucket-mb"], 15.0);
}

TEST_F(ReadAdvice, AllThatIsRecommendedIsFollowedTogetherAndPromisedTogether) {
    json buckets = setting("buckets", 70, kBuckets);
    buckets["alone"] = {{"predicted_saving_ns", 75}, {"interval_ns", {72, 78}}};
    const json recommendations = {setting("micro_batches", 40, kMicroBatches), buckets};
    const Advice advice = read(recommendations, {{"predicted_saving_ns", 110}, {"interval_ns", {100, 120}}});
    EXPECT_EQ(advice.followed, (std::vector<std::string>{"micro_batches", "buckets"}));
    EXPECT_DOUBLE_EQ(advice.promise.expected, 110);
    EXPECT_EQ(frameworkOf(advice)["arguments"], (json{{"--bucket-mb", 25}, {"--micro-batches", 12}}));
}

TEST_F(ReadAdvice, WhereNotAllCanBeFollowedTheFirstThatCanIsByItself) {
    json buckets = setting("buckets", 70, kBuckets);
    buckets["alone"] = {{"predicted_saving_ns", 75}, {"interval_ns", {72, 78}}};
    const json prefetch = {{"fsdp", {{"forward_prefetch", "True"}}}};
    const json recommendations = {setting("overlap", 90, prefetch), buckets,
                                  setting("micro_batches", 40, kMicroBatches)};
    const Advice advice = read(recommendations, {{"predicted_saving_ns", 200}, {"interval_ns", {190, 210}}});
    EXPECT_EQ(advice.followed, std::vector<std::string>{"buckets"});
    EXPECT_EQ(advice.notFollowed, std::vector<std::string>{"overlap"});
    EXPECT_DOUBLE_EQ(advice.promise.low, 72) << "by itself, not on top of the others";
    EXPECT_EQ(frameworkOf(advice)["arguments"]["--micro-batches"], 2);
}

TEST_F(ReadAdvice, VariablesAreSetAroundTheJobWhichSetsThemNoLonger) {
    const Advice advice =
        read(json::array({setting("algorithm", 70, {{"env", {{"NCCL_PROTO", nullptr}, {"NCCL_ALGO", "ring"}}}})}));
    using Variable = std::pair<std::string, std::optional<std::string>>;
    EXPECT_EQ(advice.scenario.environment,
              (std::vector<Variable>{{"NCCL_ALGO", "ring"}, {"NCCL_PROTO", std::nullopt}}));
    EXPECT_TRUE(frameworkOf(advice)["environment"].empty());
}

TEST_F(ReadAdvice, ATrialIsMadeOnlyWhereNothingIsRecommended) {
    const json trial = setting("buckets", 70, kBuckets, "try");
    EXPECT_FALSE(read(json::array({trial})).isRecommended);
    EXPECT_EQ(read(json::array({trial})).followed, std::vector<std::string>{"buckets"});
    EXPECT_EQ(read(json::array({trial, setting("micro_batches", 40, kMicroBatches)})).followed,
              std::vector<std::string>{"micro_batches"});
}

TEST_F(ReadAdvice, NothingIsFollowedWithoutSettings) {
    json repair = setting("finding", 70, kBuckets);
    repair["kind"] = "repair";
    EXPECT_TRUE(read(json::array({repair})).followed.empty());
    EXPECT_TRUE(read(json::array()).followed.empty());
}

TEST_F(ReadAdvice, AWayThatMakesNoNumberIsAnErrorWithItsHint) {
    const json bad = {{"deepspeed", {{"zero_optimization.reduce_bucket_size", "auto"}}}};
    try {
        read(json::array({setting("buckets", 70, bad)}));
        FAIL() << "'auto' was multiplied";
    } catch (const ScenarioFileError& error) {
        EXPECT_NE(std::string(error.what()).find("job.json"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("write $"), std::string::npos);
    }
}

ScenarioScore scoreOf(double gain) {
    ScenarioScore score;
    score.faultyStepNs = 1000;
    score.advice = FollowedAdvice{{"buckets"}, {}, {}, true, {100, 90, 110}, gain};
    return score;
}

TEST(PromisesKept, ThoseInTheIntervalAreCounted) {
    const std::vector<ScenarioScore> scores = {scoreOf(90), scoreOf(114), scoreOf(116), scoreOf(50)};
    const Tally tally = addUp(scores);
    EXPECT_EQ(tally.promises, 4);
    EXPECT_EQ(tally.promisesKept, 2) << "within a two-hundredth of the step counts";
}

}  // namespace
}  // namespace rankscope::score

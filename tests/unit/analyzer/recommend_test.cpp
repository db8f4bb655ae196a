// SPDX-License-Identifier: Apache-2.0
// Advice on jobs played on paper: what is said, what is kept, and how it is written.
#include "analyzer/recommend/recommend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "analyzer/analyze.h"
#include "analyzer/recommend/algorithm_support.h"
#include "analyzer/recommend/nccl_setting.h"
#include "analyzer/recommend/renderers.h"
#include "tests/unit/analyzer/player.h"

namespace rankscope::analyzer::test {
namespace {

using store::Algorithm;
using store::Op;
using store::Protocol;

constexpr const char* kLinks = "intra:gbps=100,alpha_us=5;inter:gbps=100,alpha_us=5";

/// Data parallelism over 8 ranks of one node: 8 layers, a reduction behind each, all of it exposed at the end of the step.
struct Reductions {
    Algorithm algorithm = Algorithm::ring;
    Protocol protocol = Protocol::simple;
    double share = 1;  // of the link that the choice reaches
    double bytes = 200e6;
    std::string environment, value;
    bool fromShell = true;
    int steps = 6;
    bool replayed = true;
    std::function<std::optional<EditedStep>(const std::string&)> edited;

    double transferNs() const { return 70e3 + bytes * 1.75 / (100 * share); }
};

Advice adviceOn(const Reductions& job, const RecommendOptions& options = {}) {
    Player player(8, 8, kLinks);
    player.trace.choice(job.algorithm, job.protocol);
    if (!job.environment.empty()) player.trace.environment(job.environment, job.value, job.fromShell);
    const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
    for (int step = 0; step < job.steps; ++step) {
        for (int layer = 0; layer < 8; ++layer) {
            player.compute(3e6, "backward");
            player.beside(world, Op::allReduce, job.bytes, job.transferNs());
        }
        player.endStep();
    }
    TemporaryFolder folder;
    player.trace.write(folder.path() / "trace.db");
    const Analysis analysis = readAnalysis(folder.path() / "trace.db");
    // A step on paper has no host calls to replay; one rank's busy periods tell the same of it.
    StepPredictor judge = busyPeriodPredictor(analysis);
    judge.replayed = job.replayed;
    judge.edited = job.edited;
    return adviseOn(analysis, options, judge);
}

Reductions forcedLl() {
    Reductions job;
    job.protocol = Protocol::ll;
    job.share = 0.4;
    job.environment = "NCCL_PROTO";
    job.value = "LL";
    return job;
}

NcclTestsTable sweep(AlgorithmChoice choice, double nsPerByte) {
    NcclTestsTable table;
    table.op = Op::allReduce;
    table.ranks = 8;
    table.nodes = 1;
    table.algorithm = choice.algorithm;
    table.protocol = choice.protocol;
    for (int64_t bytes = 1 << 20; bytes <= 1 << 28; bytes *= 2) table.rows.push_back({1, bytes, 30 + nsPerByte * static_cast<double>(bytes) / 1000, 30 + nsPerByte * static_cast<double>(bytes) / 1000});
    return table;
}

TEST(Recommend, AForcedSlowProtocolIsToBeUnset) {
    const Advice advice = adviceOn(forcedLl());
    ASSERT_EQ(advice.recommendations.size(), 1u);
    const Recommendation& first = advice.recommendations[0];
    EXPECT_EQ(first.certainty, Certainty::recommended);
    EXPECT_EQ(first.settings.environment, (std::map<std::string, std::optional<std::string>>{{"NCCL_PROTO", std::nullopt}}));
    const double truth = adviceOn(forcedLl()).stepNs - adviceOn({}).stepNs;
    EXPECT_NEAR(first.savingNs, truth, 0.03 * advice.stepNs);
    EXPECT_LE(first.savingLowNs, first.savingNs);
    EXPECT_GE(first.savingHighNs, first.savingNs);
}

TEST(Recommend, WhatTheJobSetsItselfIsEmptiedForIt) {
    Reductions job = forcedLl();
    job.fromShell = false;
    const Advice advice = adviceOn(job);
    ASSERT_EQ(advice.recommendations.size(), 1u);
    EXPECT_EQ(advice.recommendations[0].settings.environment, (std::map<std::string, std::optional<std::string>>{{"NCCL_PROTO", ""}}));
    ASSERT_EQ(advice.recommendations[0].notes.size(), 1u);
    const std::string lines = renderAdviceEnvironment(advice);
    EXPECT_NE(lines.find("\n# " + advice.recommendations[0].notes[0] + "\nexport NCCL_PROTO=''\n"), std::string::npos) << lines;
}

TEST(Recommend, WhatNeverRanIsKnownByAnIntervalThatHoldsIt) {
    // LL at the slow end of its range; Simple never ran.
    Reductions job = forcedLl();
    job.share = 0.25;
    const Advice advice = adviceOn(job);
    ASSERT_FALSE(advice.recommendations.empty());
    const Recommendation& first = advice.recommendations[0];
    const double simple = advice.stepNs - adviceOn({}).stepNs;
    EXPECT_LE(first.savingLowNs, simple);
    EXPECT_GE(first.savingHighNs, simple);
    EXPECT_GT(first.savingHighNs, first.savingLowNs + 0.02 * first.savingNs);
}

TEST(Recommend, NothingBetterMeansKeepTheDefault) {
    const Advice advice = adviceOn({});
    EXPECT_TRUE(advice.recommendations.empty());
    ASSERT_EQ(advice.kept.size(), 1u);
    EXPECT_NE(advice.kept[0].why.find("keep NCCL's own choice"), std::string::npos) << advice.kept[0].why;
    EXPECT_NE(renderAdviceText(advice, false).find("Keep everything as it is"), std::string::npos);
    EXPECT_NE(renderAdviceEnvironment(advice).find("# nothing to set"), std::string::npos);
    EXPECT_EQ(renderAdviceEnvironment(advice).find("\nexport"), std::string::npos);
}

TEST(Recommend, ASweepThatHasBothChoicesMakesAClaimOfIt) {
    RecommendOptions options;
    options.tables = {sweep({Algorithm::ring, Protocol::simple}, 0.0175), sweep({Algorithm::tree, Protocol::simple}, 0.009)};
    const Advice advice = adviceOn({}, options);
    ASSERT_FALSE(advice.recommendations.empty());
    const Recommendation& first = advice.recommendations[0];
    EXPECT_EQ(first.certainty, Certainty::recommended);
    EXPECT_NE(renderAdviceEnvironment(advice).find("export NCCL_ALGO='allreduce:tree'"), std::string::npos) << renderAdviceEnvironment(advice);
    EXPECT_NE(first.basis.find("nccl-tests"), std::string::npos) << first.basis;
    // A table of the other choice alone says nothing about this one.
    options.tables = {sweep({Algorithm::tree, Protocol::simple}, 0.009)};
    EXPECT_TRUE(adviceOn({}, options).recommendations.empty());
    // Nor one of another shape of group.
    options.tables = {sweep({Algorithm::ring, Protocol::simple}, 0.0175), sweep({Algorithm::tree, Protocol::simple}, 0.009)};
    for (NcclTestsTable& table : options.tables) table.ranks = 16;
    EXPECT_TRUE(adviceOn({}, options).recommendations.empty());
}

TEST(Recommend, WithoutAReplayEverythingIsOnlyATrial) {
    Reductions job = forcedLl();
    job.replayed = false;
    const Advice advice = adviceOn(job);
    ASSERT_EQ(advice.recommendations.size(), 1u);
    EXPECT_EQ(advice.recommendations[0].certainty, Certainty::tryAndMeasure);
    EXPECT_EQ(renderAdviceEnvironment(advice).find("\nunset"), std::string::npos);
}

/// Saves 20 ms at 50 MiB and less the further away the size is, by doublings.
std::optional<EditedStep> bestAtFifty(const std::string& change) {
    double mebibytes = 0;
    if (std::sscanf(change.c_str(), "buckets:mb=%lf", &mebibytes) != 1) return std::nullopt;
    const double saving = 2e7 - 4e6 * std::abs(std::log2(mebibytes / 50));
    return EditedStep{saving, saving - 1e5, saving + 1e5, {}};
}

TEST(Recommend, BucketsAreThoseThatTheSweepOfReplaysFindsBest) {
    Reductions job;
    job.edited = bestAtFifty;
    const Advice advice = adviceOn(job);
    ASSERT_EQ(advice.recommendations.size(), 1u);
    EXPECT_EQ(advice.recommendations[0].settings.ddp, (std::map<std::string, std::string>{{"bucket_cap_mb", "50"}}));
    // bf16 gradients: DeepSpeed counts elements.
    EXPECT_EQ(advice.recommendations[0].settings.deepspeed.at("zero_optimization.reduce_bucket_size"), std::to_string(25 << 20));
}

TEST(Recommend, APeakThatItsNeighboursDoNotShareIsNoAdvice) {
    Reductions job;
    job.edited = [](const std::string& change) {
        const double saving = change == "buckets:mb=8" ? 6e6 : change == "buckets:mb=100" || change == "buckets:mb=150" || change == "buckets:mb=200" ? 5e6 : -2e6;
        return std::optional(EditedStep{saving, saving, saving, {}});
    };
    const Advice advice = adviceOn(job);
    ASSERT_EQ(advice.recommendations.size(), 1u);
    EXPECT_EQ(advice.recommendations[0].settings.ddp.at("bucket_cap_mb"), "150");
}

TEST(Recommend, BucketsStayWhereNoSizeGainsMoreThanChance) {
    Reductions job;
    job.edited = [](const std::string& change) { return change.starts_with("buckets") ? std::optional(EditedStep{1e4, -1e4, 2e4, {}}) : std::nullopt; };
    const Advice advice = adviceOn(job);
    EXPECT_TRUE(advice.recommendations.empty());
    EXPECT_TRUE(std::any_of(advice.kept.begin(), advice.kept.end(), [](const KeptDefault& kept) { return kept.area == "buckets"; }));
    job.edited = [](const std::string&) { return std::nullopt; };
    const Advice none = adviceOn(job);
    EXPECT_FALSE(std::any_of(none.kept.begin(), none.kept.end(), [](const KeptDefault& kept) { return kept.area == "buckets"; })) << "a job without buckets";
}

TEST(Recommend, TwoStepsAreTooFewToAdviseOn) {
    Reductions job = forcedLl();
    job.steps = 3;  // the first one is warm-up
    const Advice advice = adviceOn(job);
    EXPECT_TRUE(advice.recommendations.empty());
    ASSERT_EQ(advice.limits.size(), 1u);
    EXPECT_NE(advice.limits[0].find("2 analysed steps"), std::string::npos) << advice.limits[0];
}

TEST(Recommend, UnknownAlgorithmsGetNoAdvice) {
    Reductions job = forcedLl();
    job.algorithm = Algorithm::unknown;
    job.protocol = Protocol::unknown;
    const Advice advice = adviceOn(job);
    for (const Recommendation& recommendation : advice.recommendations) EXPECT_NE(recommendation.area, "algorithm");
    EXPECT_FALSE(advice.limits.empty());
}

TEST(Recommend, JsonHoldsWhatAProgramNeeds) {
    const auto json = nlohmann::json::parse(renderAdviceJson(adviceOn(forcedLl())));
    EXPECT_EQ(json["schema"], "rankscope.recommend/1");
    const auto& first = json["recommendations"][0];
    EXPECT_TRUE(first["env"]["NCCL_PROTO"].is_null());
    EXPECT_EQ(first["certainty"], "recommended");
    EXPECT_LE(first["interval_ns"][0], first["predicted_saving_ns"]);
    EXPECT_TRUE(first["tuner_csv"].empty());
    EXPECT_FALSE(json["fits"].empty());
}

TEST(RenderAdvice, FragmentsAreNestedAndQuoted) {
    Advice advice;
    advice.run = "a\nb";
    Recommendation sure;
    sure.settings.environment = {{"NCCL_ALGO", "allreduce:ring"}, {"X", "it's"}, {"NCCL_PROTO", std::nullopt}};
    sure.settings.deepspeed = {{"zero_optimization.overlap_comm", "true"}, {"zero_optimization.reduce_bucket_size", "26214400"}, {"communication_data_type", "\"bf16\""}};
    sure.settings.accelerate = {{"fsdp_config.fsdp_forward_prefetch", "true"}, {"gradient_accumulation_steps", "8"}};
    Recommendation trial;
    trial.certainty = Certainty::tryAndMeasure;
    trial.settings.environment = {{"NCCL_MAX_CTAS", "8"}};
    trial.settings.deepspeed = {{"zero_optimization.stage", "3"}};
    advice.recommendations = {sure, trial};
    const std::string environment = renderAdviceEnvironment(advice);
    EXPECT_NE(environment.find("\nexport NCCL_ALGO='allreduce:ring'\n"), std::string::npos) << environment;
    EXPECT_NE(environment.find("\nunset NCCL_PROTO\n"), std::string::npos);
    EXPECT_NE(environment.find("\nexport X='it'\\''s'\n"), std::string::npos) << environment;
    EXPECT_NE(environment.find("\n# export NCCL_MAX_CTAS='8'\n"), std::string::npos) << environment;
    EXPECT_NE(environment.find("# environment for a b by"), std::string::npos);
    const auto deepspeed = nlohmann::json::parse(renderAdviceDeepSpeed(advice));
    EXPECT_EQ(deepspeed, (nlohmann::json{{"zero_optimization", {{"overlap_comm", true}, {"reduce_bucket_size", 26214400}}}, {"communication_data_type", "bf16"}}));
    EXPECT_NE(renderAdviceAccelerate(advice).find("fsdp_config:\n  fsdp_forward_prefetch: true\ngradient_accumulation_steps: 8\n"), std::string::npos) << renderAdviceAccelerate(advice);
}

TEST(NcclSetting, ReadsTheSyntaxPerFunctionAndWritesIt) {
    const NcclSetting setting = NcclSetting::parse("^NVLS,PAT;allreduce:Tree", "LL128,Simple;AllGather:^LL");
    EXPECT_EQ(setting.ruleOf(Op::allReduce).algorithms, (std::set<Algorithm>{Algorithm::tree}));
    EXPECT_TRUE(setting.ruleOf(Op::allGather).allows({Algorithm::ring, Protocol::simple}));
    EXPECT_FALSE(setting.ruleOf(Op::allGather).allows({Algorithm::pat, Protocol::simple}));
    EXPECT_FALSE(setting.ruleOf(Op::allGather).allows({Algorithm::ring, Protocol::ll}));
    EXPECT_FALSE(setting.ruleOf(Op::allReduce).allows({Algorithm::tree, Protocol::ll}));
    EXPECT_TRUE(NcclSetting::parse("", "").ruleOf(Op::allReduce).empty());
    NcclSetting two;
    two.rules[Op::allReduce] = {{Algorithm::tree}, {Protocol::simple}};
    two.rules[Op::allGather] = {{Algorithm::ring}, {}};
    EXPECT_EQ(two.protoValue(), "allreduce:simple");
    const NcclSetting again = NcclSetting::parse(two.algoValue(), two.protoValue());
    EXPECT_EQ(again.ruleOf(Op::allReduce).algorithms, two.rules[Op::allReduce].algorithms);
    EXPECT_EQ(again.ruleOf(Op::allGather).algorithms, two.rules[Op::allGather].algorithms);
}

TEST(AlgorithmSupport, OnlyWhatTheVersionTheGroupAndTheHardwareHave) {
    const NcclVersion recent{2, 28, 9}, old{2, 21, 5};
    const auto has = [&](Op op, GroupShape shape, AlgorithmChoice choice, const SeenChoices& seen = {}, const NcclVersion& version = NcclVersion{2, 28, 9}) {
        return isSupported(op, shape, choice, version, seen);
    };
    EXPECT_TRUE(has(Op::allReduce, {2, 8}, {Algorithm::tree, Protocol::ll}));
    EXPECT_FALSE(has(Op::allGather, {2, 8}, {Algorithm::tree, Protocol::simple})) << "trees reduce to all, nothing else";
    EXPECT_FALSE(has(Op::allGather, {2, 8}, {Algorithm::pat, Protocol::simple})) << "PAT has one GPU per node";
    EXPECT_TRUE(has(Op::allGather, {8, 8}, {Algorithm::pat, Protocol::simple}));
    EXPECT_FALSE(has(Op::allGather, {8, 8}, {Algorithm::pat, Protocol::simple}, {}, old));
    EXPECT_FALSE(has(Op::allReduce, {2, 8}, {Algorithm::ring, Protocol::ll128})) << "not without having seen it there";
    EXPECT_TRUE(has(Op::allReduce, {2, 8}, {Algorithm::ring, Protocol::ll128}, {{}, {Protocol::ll128}}));
    const SeenChoices nvls{{Algorithm::nvls, Algorithm::nvlsTree}, {}};
    EXPECT_TRUE(has(Op::allReduce, {1, 8}, {Algorithm::nvls, Protocol::simple}, nvls));
    EXPECT_FALSE(has(Op::allReduce, {1, 8}, {Algorithm::nvls, Protocol::ll}, nvls));
    EXPECT_FALSE(has(Op::allReduce, {1, 8}, {Algorithm::nvlsTree, Protocol::simple}, nvls)) << "a tree between nodes";
    EXPECT_FALSE(has(Op::allReduce, {1, 1}, {Algorithm::ring, Protocol::simple}));
    EXPECT_TRUE(recent.perFunctionSyntax());
    EXPECT_FALSE(old.perFunctionSyntax());
}

}  // namespace
}  // namespace rankscope::analyzer::test

// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace rankscope::reference {
namespace {

std::string errorOf(const std::string& text) {
    try {
        parseScenario(text, "s.json");
    } catch (const ScenarioError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Scenario, EveryKeyIsOptionalAndHasTheDocumentedDefault) {
    const Scenario scenario = parseScenario("{}", "s.json");
    EXPECT_EQ(scenario.kind, Kind::fsdp);
    EXPECT_EQ(scenario.steps, 12);
    EXPECT_EQ(scenario.seed, 7);
    EXPECT_DOUBLE_EQ(scenario.noise, 0.02);
    EXPECT_DOUBLE_EQ(scenario.noiseRun, 0);
    EXPECT_EQ(scenario.cluster.nodes, 2);
    EXPECT_EQ(scenario.cluster.ranksPerNode, 4);
    EXPECT_DOUBLE_EQ(scenario.cluster.tflops, 300);
    EXPECT_DOUBLE_EQ(scenario.cluster.hbmGbps, 2000);
    EXPECT_DOUBLE_EQ(scenario.cluster.launchUs, 6);
    EXPECT_DOUBLE_EQ(scenario.cluster.intra.alphaUs, 6);
    EXPECT_DOUBLE_EQ(scenario.cluster.intra.gbps, 200);
    EXPECT_DOUBLE_EQ(scenario.cluster.inter.alphaUs, 18);
    EXPECT_DOUBLE_EQ(scenario.cluster.inter.gbps, 40);
    EXPECT_EQ(scenario.model.layers, 16);
    EXPECT_EQ(scenario.model.hidden, 4096);
    EXPECT_EQ(scenario.model.seq, 2048);
    EXPECT_EQ(scenario.model.microBatch, 2);
    EXPECT_EQ(scenario.model.dtype, Dtype::bf16);
    EXPECT_EQ(scenario.parallel.dp, 8);
    EXPECT_EQ(scenario.parallel.tp, 1);
    EXPECT_EQ(scenario.parallel.pp, 1);
    EXPECT_EQ(scenario.parallel.ep, 1);
    EXPECT_EQ(scenario.parallel.schedule, Schedule::oneForwardOneBackward);
    EXPECT_EQ(scenario.parallel.virtualStages, 1);
    EXPECT_EQ(scenario.parallel.microBatches, 8);
    EXPECT_DOUBLE_EQ(scenario.parallel.bucketMb, 25);
    EXPECT_TRUE(scenario.parallel.overlap);
    EXPECT_TRUE(scenario.parallel.prefetch);
    EXPECT_EQ(scenario.parallel.accumulate, 1);
    EXPECT_TRUE(scenario.parallel.noSync);
    EXPECT_EQ(scenario.parallel.gradDtype, Dtype::bf16);
    EXPECT_TRUE(scenario.faults.kinds.empty());
}

TEST(Scenario, UnknownKeysAreNamedWithTheirPath) {
    EXPECT_EQ(errorOf(R"({"model": {"layer": 4}})").rfind("s.json: 'model.layer' is not a known key (known: ", 0), 0u);
    EXPECT_EQ(
        errorOf(R"({"cluster": {"intra": {"gbs": 4}}})").rfind("s.json: 'cluster.intra.gbs' is not a known key", 0),
        0u);
    EXPECT_EQ(errorOf(R"({"fault": []})").rfind("s.json: 'fault' is not a known key", 0), 0u);
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "straggler", "ranks": 3}]})")
                  .rfind("s.json: 'faults[0].ranks' is not a known key", 0),
              0u);
}

TEST(Scenario, WrongTypesAndRangesAreErrors) {
    EXPECT_EQ(errorOf(R"({"steps": 0})"), "s.json: 'steps' must be at least 1, it is 0");
    EXPECT_EQ(errorOf(R"({"steps": 2.5})"), "s.json: 'steps' must be an integer");
    EXPECT_EQ(errorOf(R"({"seed": 18446744073709551615})"), "s.json: 'seed' must be an integer");
    EXPECT_EQ(errorOf(R"({"cluster": {"tflops": 0}})"), "s.json: 'cluster.tflops' must be more than zero, it is 0");
    EXPECT_EQ(errorOf(R"({"model": {"dtype": "int8"}})"), "s.json: 'model.dtype' is 'int8': use bf16, fp16 or fp32");
    EXPECT_EQ(errorOf(R"({"model": 3})"), "s.json: 'model' must be a JSON object");
    EXPECT_EQ(errorOf(R"([])"), "s.json: the scenario must be a JSON object");
    EXPECT_EQ(errorOf("{").rfind("s.json: not valid JSON: ", 0), 0u);
    EXPECT_EQ(errorOf(R"({"parallel": {"overlap": 1}})"), "s.json: 'parallel.overlap' must be true or false");
}

TEST(Scenario, WorldSizeMustFitTheCluster) {
    EXPECT_EQ(errorOf(R"({"parallel": {"dp": 6}})"), "s.json: cluster has 2 nodes x 4 ranks = 8, but dp x tp x pp = 6");
    EXPECT_EQ(parseScenario(R"({"kind": "pp", "parallel": {"dp": 2, "pp": 4}})", "s.json").worldSize(), 8);
}

TEST(Scenario, ImpossibleCombinationsAreErrors) {
    EXPECT_EQ(errorOf(R"({"kind": "pp"})"), "s.json: the kind 'pp' needs parallel.pp of at least 2");
    EXPECT_EQ(errorOf(R"({"kind": "ddp", "parallel": {"dp": 4, "pp": 2}})"),
              "s.json: parallel.pp = 2: the kind 'ddp' has no pipeline (use 1, or the kind pp)");
    EXPECT_EQ(errorOf(R"({"kind": "pp", "parallel": {"dp": 2, "pp": 4}, "model": {"layers": 6}})"),
              "s.json: model.layers = 6 cannot be divided over 4 stages");
    EXPECT_EQ(errorOf(R"({"kind": "fsdp", "faults": [{"kind": "small_buckets"}]})"),
              "s.json: 'faults[0].kind' is 'small_buckets', which makes no sense for a job of the kind 'fsdp'");
    EXPECT_EQ(errorOf(R"({"kind": "ddp", "faults": [{"kind": "few_micro_batches"}]})"),
              "s.json: 'faults[0].kind' is 'few_micro_batches', which needs a pipeline (parallel.pp of at least 2)");
    EXPECT_EQ(errorOf(R"({"kind": "ddp", "faults": [{"kind": "small_buckets"}, {"kind": "single_bucket"}]})"),
              "s.json: 'small_buckets' and 'single_bucket' exclude each other");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "straggler", "rank": 8}]})"), "s.json: 'faults[0].rank' is 8 of 8 ranks");
    EXPECT_EQ(errorOf(R"({"cluster": {"nodes": 1, "ranks_per_node": 8}, "faults": [{"kind": "clock_offset"}]})"),
              "s.json: 'faults[0].kind' is 'clock_offset', which needs at least two nodes");
}

TEST(Scenario, UnknownKindsAndFaultsAreErrors) {
    EXPECT_EQ(errorOf(R"({"kind": "dp"})"),
              "s.json: 'kind' is 'dp': use ddp, zero1, zero2, fsdp, hsdp, tp, tp+sp, pp, ep, 3d or framework");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "gremlins"}]})"),
              "s.json: 'faults[0].kind' is 'gremlins', which is not a fault of this harness");
}

TEST(Scenario, KindsThatCutTheModelCombineEveryDegree) {
    const Scenario scenario = parseScenario(R"({"kind": "3d", "cluster": {"nodes": 4}, "model": {"experts": 8},
        "parallel": {"dp": 4, "tp": 2, "pp": 2, "ep": 4}})",
                                            "s.json");
    EXPECT_EQ(scenario.worldSize(), 16);
    EXPECT_EQ(scenario.model.experts, 8);
    EXPECT_EQ(parseScenario(R"({"kind": "tp_sp", "parallel": {"dp": 4, "tp": 2}})", "s.json").kind, Kind::tpSp);
    EXPECT_EQ(parseScenario(R"({"kind": "ep", "parallel": {"ep": 4}})", "s.json").model.experts, 4);
}

TEST(Scenario, DegreesThatDoNotFitNameTheirKey) {
    const auto with = [](const std::string& kind, const std::string& parallel, const std::string& more = "") {
        return errorOf(R"({"kind": ")" + kind + R"(", "parallel": {)" + parallel + "}" + more + "}");
    };
    EXPECT_EQ(with("tp", ""), "s.json: the kind 'tp' needs parallel.tp of at least 2");
    EXPECT_EQ(with("ep", ""), "s.json: the kind 'ep' needs parallel.ep of at least 2");
    EXPECT_EQ(with("3d", ""),
              "s.json: the kind '3d' needs parallel.tp or parallel.pp of at least 2 (with one of each, use ddp or ep)");
    EXPECT_EQ(with("zero1", R"("dp": 4, "tp": 2)"),
              "s.json: parallel.tp = 2: the kind 'zero1' has no tensor parallelism (use 1, or the kind tp)");
    EXPECT_EQ(with("ep", R"("ep": 3)"),
              "s.json: parallel.ep = 3 does not divide parallel.dp = 8: experts are spread over replicas");
    EXPECT_EQ(with("ep", R"("ep": 4)", R"(, "model": {"experts": 6})"),
              "s.json: model.experts = 6 cannot be divided over parallel.ep = 4");
    EXPECT_EQ(with("ddp", "", R"(, "model": {"experts": 8})"),
              "s.json: model.experts = 8: the kind 'ddp' has none (use the kind ep)");
    EXPECT_EQ(with("tp", R"("dp": 1, "tp": 8)", R"(, "model": {"hidden": 100})"),
              "s.json: model.hidden = 100 cannot be divided over parallel.tp = 8");
    EXPECT_EQ(with("tp+sp", R"("dp": 1, "tp": 8)", R"(, "model": {"seq": 100})"),
              "s.json: model.seq = 100 cannot be divided over parallel.tp = 8");
    EXPECT_EQ(with("hsdp", "", R"(, "cluster": {"nodes": 1, "ranks_per_node": 8})")
                  .rfind("s.json: the kind 'hsdp' needs cluster.nodes", 0),
              0u);
}

TEST(Scenario, SchedulesThatDoNotFitNameTheirKey) {
    const auto pipeline = [](const std::string& parallel) {
        return errorOf(R"({"kind": "pp", "parallel": {"dp": 2, "pp": 4, )" + parallel + "}}");
    };
    EXPECT_EQ(pipeline(R"("schedule": "interleaved")"),
              "s.json: parallel.schedule = interleaved needs parallel.virtual_stages of at least 2");
    EXPECT_EQ(pipeline(R"("virtual_stages": 2)"),
              "s.json: parallel.virtual_stages = 2 needs parallel.schedule = interleaved");
    EXPECT_EQ(pipeline(R"("schedule": "interleaved", "virtual_stages": 2, "micro_batches": 6)"),
              "s.json: parallel.micro_batches = 6 is not a multiple of parallel.pp = 4, which the interleaved schedule "
              "needs");
    EXPECT_EQ(pipeline(R"("schedule": "interleaved", "virtual_stages": 3)"),
              "s.json: model.layers = 16 cannot be divided over 12 stages");
    EXPECT_EQ(pipeline(R"("schedule": "zigzag")"),
              "s.json: 'parallel.schedule' is 'zigzag': use gpipe, 1f1b or interleaved");
    EXPECT_EQ(pipeline(R"("schedule": "interleaved", "virtual_stages": 4)"), "no error");
}

TEST(Scenario, FaultStrengthsLeftOutHaveDefaults) {
    const Scenario scenario = parseScenario(
        R"({"kind": "ddp", "faults": [{"kind": "straggler"}, {"kind": "small_buckets"}, {"kind": "kill"}]})", "s.json");
    ASSERT_EQ(scenario.faults.stragglers.size(), 1u);
    EXPECT_EQ(scenario.faults.stragglers[0].rank, 0);
    EXPECT_DOUBLE_EQ(scenario.faults.stragglers[0].factor, 1.5);
    EXPECT_DOUBLE_EQ(scenario.faults.smallBucketsKb.value(), 1024);
    EXPECT_EQ(scenario.faults.kill->rank, 0);
    EXPECT_EQ(scenario.faults.kill->step, 6);
}

TEST(Scenario, HostFaultsHaveDefaultsForEachMicroStep) {
    const std::string faults =
        R"("faults": [{"kind": "jitter"}, {"kind": "launch_bound"}, {"kind": "sync_every_step"}, {"kind": "slow_input"},
                                             {"kind": "alloc_churn"}, {"kind": "pageable_copies"}])";
    const Faults once = parseScenario("{" + faults + "}", "s.json").faults;
    EXPECT_DOUBLE_EQ(once.jitter->share, 0.2);
    EXPECT_DOUBLE_EQ(once.jitter->ms, 100);
    EXPECT_EQ(once.launchBound->kernels, 2048);
    EXPECT_EQ(once.syncEveryStep->perStep, 8);
    EXPECT_DOUBLE_EQ(once.syncEveryStep->hostMs, 2);
    EXPECT_DOUBLE_EQ(once.slowInput->ms, 30);
    EXPECT_EQ(once.allocChurn->perStep, 16);
    EXPECT_DOUBLE_EQ(once.allocChurn->us, 500);
    EXPECT_EQ(once.pageableCopies->perStep, 4);
    EXPECT_DOUBLE_EQ(once.pageableCopies->mb, 256);
    const Faults many = parseScenario(R"({"parallel": {"accumulate": 6}, )" + faults + "}", "s.json").faults;
    EXPECT_DOUBLE_EQ(many.jitter->ms, 600);
    EXPECT_EQ(many.launchBound->kernels, 4 * 2048);
    EXPECT_EQ(many.syncEveryStep->perStep, 48);
    EXPECT_DOUBLE_EQ(many.slowInput->ms, 180);
    EXPECT_EQ(many.allocChurn->perStep, 96);
    EXPECT_DOUBLE_EQ(many.pageableCopies->mb, 1536);
    const Faults given =
        parseScenario(
            R"({"parallel": {"accumulate": 6}, "faults": [{"kind": "sync_every_step", "per_step": 3, "host_ms": 0}]})",
            "s.json")
            .faults;
    EXPECT_EQ(given.syncEveryStep->perStep, 3);
    EXPECT_DOUBLE_EQ(given.syncEveryStep->hostMs, 0);
}

TEST(Scenario, FaultsThatAreSettingsSetThem) {
    const Scenario scenario = parseScenario(
        R"({"parallel": {"accumulate": 2}, "faults": [{"kind": "fp32_grads"}, {"kind": "no_no_sync"}]})", "s.json");
    EXPECT_EQ(scenario.parallel.gradDtype, Dtype::fp32);
    EXPECT_FALSE(scenario.parallel.noSync);
    const Faults algo =
        parseScenario(R"({"faults": [{"kind": "wrong_algo", "algo": "allreduce:tree;allgather:ring"}]})", "s.json")
            .faults;
    EXPECT_EQ(algo.wrongAlgo->algo, "allreduce:tree;allgather:ring");
    EXPECT_EQ(algo.wrongAlgo->proto, "");
    EXPECT_EQ(parseScenario(R"({"faults": [{"kind": "wrong_algo"}]})", "s.json").faults.wrongAlgo->proto, "LL");
}

TEST(Scenario, FaultsOfTheJobNeedAJobThatCanHaveThem) {
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "no_no_sync"}]})"),
              "s.json: 'faults[0].kind' is 'no_no_sync', which needs parallel.accumulate of at least 2");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "stage_imbalance"}]})"),
              "s.json: 'faults[0].kind' is 'stage_imbalance', which needs a pipeline (parallel.pp of at least 2)");
    EXPECT_EQ(
        errorOf(
            R"({"kind": "pp", "parallel": {"dp": 2, "pp": 4}, "faults": [{"kind": "stage_imbalance", "stage": 4}]})"),
        "s.json: 'faults[0].stage' is 4 of 4 stages");
    EXPECT_EQ(errorOf(R"({"kind": "pp", "parallel": {"dp": 1, "pp": 8}, "faults": [{"kind": "uneven_work"}]})"),
              "s.json: 'faults[0].kind' is 'uneven_work', which needs replicas (parallel.dp of at least 2)");
    EXPECT_EQ(errorOf(R"({"kind": "pp", "parallel": {"dp": 2, "pp": 4}, "faults": [{"kind": "late_launch"}]})"),
              "s.json: 'faults[0].kind' is 'late_launch', which makes no sense for a job of the kind 'pp'");
    EXPECT_EQ(errorOf(R"({"kind": "pp", "parallel": {"dp": 1, "pp": 8}, "faults": [{"kind": "mismatch"}]})"),
              "s.json: 'faults[0].kind' is 'mismatch', but the job has no collectives (only sends between stages)");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "mismatch", "what": "peer"}]})"),
              "s.json: 'faults[0].what' is 'peer': use op, size, dtype, order or root");
    EXPECT_EQ(
        errorOf(R"({"kind": "tp", "parallel": {"dp": 4, "tp": 2}, "faults": [{"kind": "mismatch", "what": "order"}]})"),
        "s.json: 'faults[0].kind' is 'mismatch' of 'order', which makes no sense for a job of the kind 'tp'");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "oom", "step": 12}]})"), "s.json: 'faults[0].step' is 12 of 12 steps");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "tp_across_nodes"}]})"),
              "s.json: 'faults[0].kind' is 'tp_across_nodes', which needs parallel.tp of at least 2");
    EXPECT_EQ(errorOf(R"({"model": {"dtype": "fp32"}, "faults": [{"kind": "fp32_grads"}]})"),
              "s.json: 'faults[0].kind' is 'fp32_grads', but model.dtype is fp32: nothing computes in 16 bit");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "wrong_algo", "algo": "star"}]})"),
              "s.json: 'faults[0].algo' is 'star': NCCL knows no 'star'");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "uneven_work", "ranks": [1, 1]}]})"),
              "s.json: 'faults[0].ranks' names rank 1 twice");
    EXPECT_EQ(
        errorOf(
            R"({"cluster": {"nodes": 1, "ranks_per_node": 2}, "parallel": {"dp": 2}, "faults": [{"kind": "uneven_work", "ranks": [1, 0]}]})"),
        "s.json: 'faults[0].ranks' names every replica: none is left to have less");
}

TEST(Scenario, SenselessStrengthsAreNamed) {
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "jitter", "share": 1.5}]})"),
              "s.json: 'faults[0].share' is a share of the steps: at most 1");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "sync_every_step", "per_step": 0}]})"),
              "s.json: 'faults[0].per_step' must be at least 1, it is 0");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "slow_input", "ms": 0}]})"),
              "s.json: 'faults[0].ms' must be more than zero, it is 0");
    EXPECT_EQ(errorOf(R"({"faults": [{"kind": "slow_input", "ms": 1e18}]})"),
              "s.json: 'faults[0].ms' must be at most 1e9, it is 1e+18");
}

TEST(Scenario, FixedOverridesAreMergedAndNothingIsExpectedAfterwards) {
    const std::string text =
        R"({"kind": "pp", "cluster": {"nodes": 1}, "parallel": {"dp": 1, "pp": 4, "micro_batches": 4},
                                 "faults": [{"kind": "few_micro_batches"}], "expect": [{"id": "RS101"}],
                                 "fixed": {"parallel": {"micro_batches": 40}, "faults": []}})";
    const std::string fixedText = fixedScenarioText(text, "s.json");
    const Scenario fixed = parseScenario(fixedText, "fixed");
    EXPECT_EQ(fixed.parallel.microBatches, 40);
    EXPECT_EQ(fixed.parallel.pp, 4);
    EXPECT_TRUE(fixed.faults.kinds.empty());
    const auto document = nlohmann::json::parse(fixedText);
    EXPECT_FALSE(document.contains("expect"));
    EXPECT_FALSE(document.contains("fixed"));
}

TEST(Scenario, WhatIsExpectedIsCheckedBeforeTheRun) {
    EXPECT_EQ(
        errorOf(
            R"({"expect": [{"id": "RS301", "ranks": [3]}, "RS201", {"id": "RS203", "ranks": [], "why": "the link is full"}], "allow": []})"),
        "no error");
    EXPECT_EQ(errorOf(R"({"expect": {"id": "RS301"}})"), "s.json: 'expect' must be a list");
    EXPECT_EQ(errorOf(R"({"expect": [3]})"),
              "s.json: 'expect[0]' must be an object with an id, such as {\"id\": \"RS301\", \"ranks\": [3]}");
    EXPECT_EQ(errorOf(R"({"allow": [{"id": "RS301", "ranks": [8]}]})"), "s.json: 'allow[0].ranks' names 8 of 8 ranks");
    EXPECT_EQ(errorOf(R"({"expect": ["RS301", {"id": "RS301", "ranks": [-1]}]})"),
              "s.json: 'expect[1].ranks' names -1 of 8 ranks");
    EXPECT_EQ(errorOf(R"({"expect": [{"id": "RS301", "ranks": [2, 2]}]})"),
              "s.json: 'expect[0].ranks' names rank 2 twice");
    EXPECT_EQ(errorOf(R"({"expect": [{"id": "straggler"}]})"),
              "s.json: 'expect[0].id' is 'straggler': a diagnosis is called RS301 or the like");
    EXPECT_EQ(errorOf(R"({"allow": ["RS2*"]})"),
              "s.json: 'allow[0]' is 'RS2*': a diagnosis is called RS301 or the like");
    EXPECT_NE(errorOf(R"({"expect": [{"ranks": [3]}]})").find("'expect[0].id' is missing"), std::string::npos);
    EXPECT_NE(errorOf(R"({"expect": [{"id": "RS301", "rank": 3}]})").find("'expect[0].rank' is not a known key"),
              std::string::npos);
    EXPECT_NE(errorOf(R"({"expect": [{"id": "RS301"}], "allowed": []})").find("'allowed' is not a known key"),
              std::string::npos);
}

TEST(Scenario, ARepairIsCheckedBeforeTheFaultyRun) {
    EXPECT_EQ(errorOf(R"({"fixed": []})"), "s.json: 'fixed' must be a JSON object");
    EXPECT_NE(errorOf(R"({"follow": []})").find("s.json: 'follow' must be an object, such as"), std::string::npos);
    EXPECT_EQ(errorOf(R"({"follow": {"ddp.bucket_cap_mb": {"parallel": {"bucket_mb": "$"}}}})"), "no error");
    EXPECT_NE(
        errorOf(R"({"fixed": {"fault": []}})").find("s.json with its 'fixed' overrides: 'fault' is not a known key"),
        std::string::npos);
    EXPECT_NE(errorOf(R"({"fixed": {"parallel": {"bucketmb": 25}}})")
                  .find("s.json with its 'fixed' overrides: 'parallel.bucketmb' is not a known key"),
              std::string::npos);
    EXPECT_NE(errorOf(R"({"fixed": {"parallel": {"dp": 3}}})").find("s.json with its 'fixed' overrides: cluster has"),
              std::string::npos);
    EXPECT_NE(errorOf(R"({"fixed": {"fixed": {}}})").find("'fixed.fixed' has no place there"), std::string::npos);
    // What is allowed of the faulty job names ranks that the repaired one need not have.
    EXPECT_EQ(
        errorOf(
            R"({"allow": [{"id": "RS203", "ranks": [7]}], "fixed": {"cluster": {"nodes": 1}, "parallel": {"dp": 4}}})"),
        "no error");
}

TEST(Scenario, AWorldIsIdealOrHasANumber) {
    for (const char* good : {R"({"world": "ideal"})", R"({"world": 7})", R"({"world": 0})"})
        EXPECT_EQ(errorOf(good), "no error") << good;
    for (const char* bad : {R"({"world": "flat"})", R"({"world": -1})", R"({"world": 1.5})", R"({"world": 1e12})"})
        EXPECT_NE(errorOf(bad).find("'world' must be \"ideal\" or the number of a world"), std::string::npos) << bad;
    EXPECT_NE(errorOf(R"({"cluster": {"intra": {"reached": 1.2}}})").find("is a share of the rate: at most 1"),
              std::string::npos);
}

TEST(Scenario, OverridesThatMakeNoSenseAreErrors) {
    EXPECT_THROW(fixedScenarioText(R"({"fixed": {"parallel": {"dp": 3}}})", "s.json"), ScenarioError);
    EXPECT_THROW(fixedScenarioText("{}", "s.json"), ScenarioError);
}

TEST(Scenario, SummaryTellsWhatALauncherNeeds) {
    const auto summary = nlohmann::json::parse(summaryText(parseScenario(
        R"({"name": "n", "cluster": {"inter": {"gbps": 12.5}}, "expect": [{"id": "RS203"}]})", "s.json")));
    EXPECT_EQ(summary["claims"], (nlohmann::json{{{"key", "expect[0].id"}, {"id", "RS203"}}}));
    EXPECT_EQ(summary["name"], "n");
    EXPECT_EQ(summary["kind"], "fsdp");
    EXPECT_EQ(summary["world_size"], 8);
    EXPECT_EQ(summary["nodes"], 2);
    EXPECT_EQ(summary["ranks_per_node"], 4);
    EXPECT_EQ(summary["links"], "intra:gbps=200,alpha_us=6;inter:gbps=12.5,alpha_us=18");
}

TEST(FrameworkJob, SaysHowItsScriptIsStarted) {
    const Scenario scenario = parseScenario(
        R"({"kind": "framework", "cluster": {"nodes": 2, "ranks_per_node": 2}, "framework": {"script": "train.py", "modules": ["torch"],
            "arguments": {"--steps": 8, "--overlap": true, "--quiet": false, "--split": [1, 3]}, "environment": {"NCCL_PROTO": "LL"}}})",
        "s.json");
    EXPECT_EQ(scenario.worldSize(), 4);
    const auto summary = nlohmann::json::parse(summaryText(scenario))["framework"];
    EXPECT_EQ(summary["script"], "train.py");
    EXPECT_EQ(summary["arguments"], (nlohmann::json{"--overlap", "--split", "1", "3", "--steps", "8"}));
    EXPECT_EQ(summary["environment"], (nlohmann::json{{"NCCL_PROTO", "LL"}}));
    EXPECT_EQ(summary["modules"], nlohmann::json{"torch"});
}

TEST(FrameworkJob, FaultsOfItsOwnSettingsAreLabelsAndThoseOfDevicesArePlanted) {
    const auto withFault = [](const std::string& fault) {
        return R"({"kind": "framework", "cluster": {"nodes": 1, "ranks_per_node": 2}, "framework": {"script": "t.py"}, "faults": [)" +
               fault + "]}";
    };
    EXPECT_EQ(parseScenario(withFault(R"({"kind": "small_buckets"})"), "s.json").faults.kinds,
              std::vector<std::string>{"small_buckets"});
    EXPECT_EQ(parseScenario(withFault(R"({"kind": "straggler", "rank": 1})"), "s.json").faults.stragglers.size(), 1u);
    EXPECT_NE(errorOf(withFault(R"({"kind": "small_buckets", "kb": 4})")).find("'faults[0].kb' is not a known key"),
              std::string::npos);
    EXPECT_NE(errorOf(withFault(R"({"kind": "kill"})")).find("which nothing plants in a job of a framework"),
              std::string::npos);
    EXPECT_NE(errorOf(withFault(R"({"kind": "straggler", "rank": 2})")).find("2 of 2 ranks"), std::string::npos);
}

TEST(FrameworkJob, WhatIsNoJobIsRefused) {
    EXPECT_NE(errorOf(R"({"kind": "framework"})").find("'framework.script' is missing"), std::string::npos);
    EXPECT_NE(errorOf(R"({"kind": "framework", "framework": {"script": "t.py", "arguments": {"steps": 8}}})")
                  .find("begins with a dash"),
              std::string::npos);
    EXPECT_NE(errorOf(R"({"kind": "framework", "framework": {"script": "t.py"}, "model": {"layers": 2}})")
                  .find("'model' is not a known key"),
              std::string::npos);
    EXPECT_NE(errorOf(R"({"kind": "ddp", "framework": {"script": "t.py"}})").find("'framework' is not a known key"),
              std::string::npos);
}

TEST(Scenario, BuiltInScenariosAreValidAndNamedLikeTheirFiles) {
    int healthy = 0;
    int all = 0;
    for (const auto& entry : std::filesystem::directory_iterator(RANKSCOPE_SCENARIO_FOLDER)) {
        SCOPED_TRACE(entry.path().string());
        const Scenario scenario = loadScenario(entry.path().string());
        EXPECT_EQ(scenario.name, entry.path().stem().string());
        EXPECT_FALSE(scenario.description.empty());
        EXPECT_FALSE(scenario.faults.kinds.empty()) << "a healthy scenario says 'none'";
        healthy += scenario.faults.kinds == std::vector<std::string>{"none"};
        ++all;
    }
    ASSERT_GT(all, 0);
    EXPECT_GE(3 * healthy + 3, all) << "healthy controls belong to every kind";
}

}  // namespace
}  // namespace rankscope::reference

// SPDX-License-Identifier: Apache-2.0
// The workloads on the virtual GPUs: exact results, and the bytes that theory asks for.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <numeric>
#include <set>
#include <utility>

#include "tests/unit/reference/workloads/workload_job.h"

namespace rankscope::reference {
namespace {

std::string cluster(int nodes, int ranksPerNode) {
    return R"("cluster": {"nodes": )" + std::to_string(nodes) + R"(, "ranks_per_node": )" +
           std::to_string(ranksPerNode) + "}";
}

/// hidden = 64: a layer has 12 x 64 x 64 + 13 x 64 = 49,984 parameters.
constexpr size_t kLayerParameters = 49984;
const std::string kSmallModel = R"("model": {"layers": 4, "hidden": 64, "seq": 32, "micro_batch": 2})";

std::string dataParallel(const std::string& kind, int ranks, const std::string& parallel = "",
                         const std::string& more = "") {
    return R"({"kind": ")" + kind + R"(", "steps": 3, )" + kSmallModel + ", " + cluster(1, ranks) +
           R"(, "parallel": {"dp": )" + std::to_string(ranks) + parallel + "}" + more + "}";
}

std::string pipeline(int dp, int pp, const std::string& schedule, int microBatches) {
    return R"({"kind": "pp", "steps": 3, )" + kSmallModel + ", " + cluster(1, dp * pp) + R"(, "parallel": {"dp": )" +
           std::to_string(dp) + R"(, "pp": )" + std::to_string(pp) + R"(, "schedule": ")" + schedule +
           R"(", "micro_batches": )" + std::to_string(microBatches) + "}}";
}

void expectExact(const JobResult& result) {
    for (size_t rank = 0; rank < result.status.size(); ++rank)
        EXPECT_EQ(result.status[rank], 0) << "rank " << rank << ": " << result.output[rank];
    EXPECT_NE(result.output[0].find("checksum"), std::string::npos) << result.output[0];
}

size_t sum(const std::vector<size_t>& values) {
    return std::accumulate(values.begin(), values.end(), size_t{0});
}
size_t sentBytes(const JobResult& result, size_t rank, const std::string& op) {
    const auto found = result.calls[rank].find(op);
    return found == result.calls[rank].end() ? 0 : sum(found->second);
}

const std::map<std::string, std::string> kMoveAllData = {{"RANKSCOPE_VGPU_DATA", "full"}};

class RankCounts : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Jobs, RankCounts, testing::Values(2, 3, 5, 8));

TEST_P(RankCounts, DdpGradientSumsAreExact) {
    expectExact(runJob(dataParallel("ddp", GetParam()), GetParam()));
}
TEST_P(RankCounts, DdpGradientSumsAreExactInEveryElement) {
    expectExact(runJob(dataParallel("ddp", GetParam()), GetParam(), kMoveAllData));
}
TEST_P(RankCounts, FsdpGathersAndSumsAreExact) {
    expectExact(runJob(dataParallel("fsdp", GetParam()), GetParam()));
}
TEST_P(RankCounts, FsdpGathersAndSumsAreExactInEveryElement) {
    expectExact(runJob(dataParallel("fsdp", GetParam()), GetParam(), kMoveAllData));
}

TEST(WorkloadJobs, EveryGradientTypeIsExact) {
    for (const char* dtype : {"bf16", "fp16", "fp32"})
        for (const char* kind : {"ddp", "fsdp"})
            expectExact(
                runJob(dataParallel(kind, 3, std::string(R"(, "grad_dtype": ")") + dtype + "\""), 3, kMoveAllData));
}

TEST(WorkloadJobs, BucketsOfDifferentSizesAreExact) {
    const JobResult result = runJob(dataParallel("ddp", 3, R"(, "bucket_mb": 0.02)"), 3, kMoveAllData);
    expectExact(result);
    const std::vector<size_t>& messages = result.calls[0].at("all_reduce");
    EXPECT_GT(std::set<size_t>(messages.begin(), messages.end()).size(), 1u);
}

TEST(WorkloadJobs, AccumulatedGradientsAreExactWithAndWithoutNoSync) {
    for (const char* noSync : {"true", "false"})
        for (const char* kind : {"ddp", "fsdp"})
            expectExact(runJob(dataParallel(kind, 3, std::string(R"(, "accumulate": 3, "no_sync": )") + noSync), 3,
                               kMoveAllData));
}

TEST(WorkloadJobs, PlantedFaultsDoNotChangeTheResult) {
    const auto withFault = [](const char* fault) { return std::string(R"(, "faults": [{"kind": ")") + fault + "\"}]"; };
    for (const char* fault : {"straggler", "small_buckets", "single_bucket", "no_overlap"})
        expectExact(runJob(dataParallel("ddp", 2, "", withFault(fault)), 2));
    for (const char* fault : {"straggler", "no_overlap", "no_prefetch"})
        expectExact(runJob(dataParallel("fsdp", 2, "", withFault(fault)), 2));
    for (const char* fault : {"jitter", "late_launch", "launch_bound", "sync_every_step", "alloc_churn",
                              "pageable_copies", "uneven_work", "fp32_grads"})
        for (const char* kind : {"ddp", "fsdp"})
            expectExact(runJob(dataParallel(kind, 2, "", withFault(fault)), 2, kMoveAllData));
    for (const char* kind : {"zero1", "zero2"})
        expectExact(runJob(dataParallel(kind, 2, "", withFault("late_launch")), 2, kMoveAllData));
}

TEST(WorkloadJobs, PipelineOutputEqualsThatOfOneRank) {
    for (const char* schedule : {"gpipe", "1f1b"}) {
        expectExact(runJob(pipeline(1, 2, schedule, 5), 2, kMoveAllData));
        expectExact(runJob(pipeline(1, 4, schedule, 3), 4, kMoveAllData));
        expectExact(runJob(pipeline(1, 4, schedule, 6), 4));
        expectExact(runJob(pipeline(2, 4, schedule, 6), 8));
    }
}

TEST(WorkloadJobs, DdpReducesEveryGradientOncePerStep) {
    // A ring moves 2 N (P-1)/P bytes per rank for an all-reduce of N bytes: the calls must add up to N = all gradients,
    // once a step.
    const JobResult result = runJob(dataParallel("ddp", 4), 4);
    expectExact(result);
    for (size_t rank = 0; rank < 4; ++rank)
        EXPECT_EQ(sentBytes(result, rank, "all_reduce"), 3 * 4 * kLayerParameters * 2) << "rank " << rank;
}

TEST(WorkloadJobs, DdpReducesOncePerMicroStepWithoutNoSync) {
    const JobResult kept = runJob(dataParallel("ddp", 2, R"(, "accumulate": 4)"), 2);
    const JobResult everyTime = runJob(dataParallel("ddp", 2, R"(, "accumulate": 4, "no_sync": false)"), 2);
    EXPECT_EQ(4 * sentBytes(kept, 0, "all_reduce"), sentBytes(everyTime, 0, "all_reduce"));
}

TEST(WorkloadJobs, SmallBucketsLeaveInMessagesOfExactlyTheSizeAskedFor) {
    const JobResult result =
        runJob(dataParallel("ddp", 2, "", R"(, "faults": [{"kind": "small_buckets", "kb": 16}])"), 2);
    expectExact(result);
    const size_t gradients = 4 * kLayerParameters * 2;
    const std::vector<size_t>& messages = result.calls[0].at("all_reduce");
    ASSERT_EQ(messages.size(), 3 * (gradients / 16384 + 1));
    for (size_t i = 0; i < gradients / 16384; ++i) EXPECT_EQ(messages[i], 16384u);
    EXPECT_EQ(messages[gradients / 16384], gradients % 16384);
}

TEST(WorkloadJobs, FsdpGathersTwiceAndScattersOncePerStep) {
    // ZeRO-3 moves 3 N (P-1)/P bytes per rank and step: two all-gathers and one reduce-scatter of N bytes. Calls count
    // one rank's part, N/P.
    const JobResult result = runJob(dataParallel("fsdp", 4), 4);
    expectExact(result);
    const size_t part = 4 * kLayerParameters * 2 / 4;
    for (size_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(sentBytes(result, rank, "all_gather"), 3 * 2 * part) << "rank " << rank;
        EXPECT_EQ(sentBytes(result, rank, "reduce_scatter"), 3 * part) << "rank " << rank;
        EXPECT_EQ(result.calls[rank].count("all_reduce"), 0u);
    }
}

TEST(WorkloadJobs, PipelineSendsOneActivationAndOneGradientPerMicroBatchAndBoundary) {
    // B x S x H elements of two bytes, there and back.
    const size_t activation = 2 * 32 * 64 * 2;
    for (const char* schedule : {"gpipe", "1f1b"}) {
        const JobResult result = runJob(pipeline(1, 4, schedule, 5), 4);
        expectExact(result);
        const size_t boundaries[] = {1, 2, 2, 1};
        for (size_t rank = 0; rank < 4; ++rank) {
            EXPECT_EQ(sentBytes(result, rank, "send"), 3 * 5 * boundaries[rank] * activation)
                << schedule << " rank " << rank;
            EXPECT_EQ(sentBytes(result, rank, "recv"), 3 * 5 * boundaries[rank] * activation)
                << schedule << " rank " << rank;
        }
    }
}

TEST(WorkloadJobs, ReplicatedPipelineSumsEachStagesGradientsOncePerStep) {
    const JobResult result = runJob(pipeline(2, 2, "1f1b", 4), 4);
    expectExact(result);
    for (size_t rank = 0; rank < 4; ++rank)
        EXPECT_EQ(sentBytes(result, rank, "all_reduce"), 3 * 2 * kLayerParameters * 2) << "rank " << rank;
}

TEST(WorkloadJobs, WrongNumberOfRanksIsAUsageErrorToldOnce) {
    const JobResult result = runJob(dataParallel("ddp", 4), 2);
    EXPECT_EQ(result.status, (std::vector<int>{2, 2}));
    EXPECT_NE(result.output[0].find("is for 4 ranks, but 2 were started"), std::string::npos) << result.output[0];
    EXPECT_EQ(result.output[1], "");
}

TEST(WorkloadJobs, APlannedDeathKillsThatRank) {
    const JobResult result =
        runJob(dataParallel("ddp", 2, "", R"(, "faults": [{"kind": "kill", "rank": 1, "step": 1}])"), 2);
    EXPECT_EQ(result.status[1], 128 + SIGKILL);
    EXPECT_NE(result.status[0], 0) << "rank 0 cannot finish without rank 1";
}

std::string failing(const std::string& kind, const std::string& fault) {
    return dataParallel(kind, 3, R"(, "bucket_mb": 0.02)", R"(, "faults": [{"rank": 1, "step": 1, )" + fault + "}]");
}

bool watchdogSpoke(const JobResult& result) {
    return std::any_of(result.output.begin(), result.output.end(), [](const std::string& text) {
        return text.find("Watchdog caught collective operation timeout: step 1") != std::string::npos;
    });
}

TEST(WorkloadJobs, OutOfMemoryEndsOneRankAndTheOthersTimeOut) {
    for (const char* kind : {"ddp", "fsdp"}) {
        const JobResult result = runJob(failing(kind, R"("kind": "oom")"), 3);
        EXPECT_EQ(result.status[1], 3) << result.output[1];
        EXPECT_NE(result.output[1].find("rank 1: out of memory: tried to allocate"), std::string::npos)
            << result.output[1];
        EXPECT_TRUE(watchdogSpoke(result));
        for (const size_t rank : {0, 2}) EXPECT_NE(result.status[rank], 0);
    }
}

TEST(WorkloadJobs, AMissingRankMakesTheOthersTimeOut) {
    for (const auto& [kind, op] : {std::pair("ddp", "all_reduce"), std::pair("fsdp", "reduce_scatter")}) {
        const JobResult result = runJob(failing(kind, R"("kind": "missing_rank")"), 3);
        EXPECT_EQ(result.status[1], 128 + SIGTERM);
        EXPECT_TRUE(watchdogSpoke(result));
        EXPECT_LT(sentBytes(result, 1, op), sentBytes(result, 0, op));
    }
}

TEST(WorkloadJobs, RanksThatDisagreeAboutACollectiveTimeOut) {
    for (const char* what : {"op", "size", "dtype", "order"})
        for (const char* kind : {"ddp", "fsdp"}) {
            SCOPED_TRACE(std::string(kind) + " " + what);
            const JobResult result =
                runJob(failing(kind, std::string(R"("kind": "mismatch", "what": ")") + what + "\""), 3);
            EXPECT_TRUE(watchdogSpoke(result)) << result.output[0] << result.output[1] << result.output[2];
            for (const int status : result.status) EXPECT_NE(status, 0);
        }
}

TEST(WorkloadJobs, AnOrderThatCannotChangeIsAnError) {
    const JobResult result = runJob(
        dataParallel("ddp", 2, "", R"(, "faults": [{"rank": 1, "step": 1, "kind": "mismatch", "what": "order"}])"), 2);
    EXPECT_NE(result.output[1].find("rank 1: 'mismatch' of 'order' changes nothing in step 1"), std::string::npos)
        << result.output[1];
    EXPECT_EQ(result.status[1], 3);
}

TEST(WorkloadJobs, RunsUnderMpirun) {
    std::string output;
    if (runShell("command -v mpirun", output) != 0) GTEST_SKIP() << "mpirun is not installed";
    const std::string scenario = scratchFolder() + "/mpirun.json";
    std::ofstream(scenario) << dataParallel("ddp", 3);
    output.clear();
    const int status = runShell(
        "env -u RANKSCOPE_VGPU_JOB OMPI_MCA_odls_base_num_threads=0 OMPI_ALLOW_RUN_AS_ROOT=1 "
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 RANKSCOPE_SCENARIO=" +
            scenario +
            " LD_LIBRARY_PATH=" RANKSCOPE_VGPU_FOLDER
            ":$LD_LIBRARY_PATH timeout 60 mpirun --oversubscribe -n 3 " RANKSCOPE_WORKLOAD_PATH " " +
            scenario,
        output);
    EXPECT_EQ(status, 0) << output;
    EXPECT_NE(output.find("ddp: 3 ranks, 3 steps, checksum "), std::string::npos) << output;
}

}  // namespace
}  // namespace rankscope::reference

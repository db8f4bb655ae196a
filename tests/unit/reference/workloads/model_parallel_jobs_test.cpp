// SPDX-License-Identifier: Apache-2.0
// Jobs that cut the model or the optimizer, on the virtual GPUs: every value equals what one rank would have computed.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/reference/workloads/workload_job.h"

namespace rankscope::reference {
namespace {

struct Job {
    std::string name;
    std::string kind;
    int nodes;
    int ranksPerNode;
    std::string parallel;
    std::string model = R"("layers": 4, "hidden": 64, "seq": 32, "micro_batch": 2)";
};

std::string textOf(const Job& job) {
    return R"({"kind": ")" + job.kind + R"(", "steps": 3, "cluster": {"nodes": )" + std::to_string(job.nodes) +
           R"(, "ranks_per_node": )" + std::to_string(job.ranksPerNode) + R"(}, "model": {)" + job.model +
           R"(}, "parallel": {)" + job.parallel + "}}";
}

const std::string kExperts = R"("layers": 4, "hidden": 64, "seq": 33, "micro_batch": 1, "experts": 4)";

const std::vector<Job> kJobs = {
    {"Zero1", "zero1", 1, 4, R"("dp": 4)"},
    {"Zero1WithPaddedBuckets", "zero1", 1, 3, R"("dp": 3, "bucket_mb": 0.02, "accumulate": 2, "grad_dtype": "fp32")"},
    {"Zero2", "zero2", 1, 4, R"("dp": 4)"},
    {"Zero2WithPaddedBuckets", "zero2", 1, 3, R"("dp": 3, "bucket_mb": 0.02, "accumulate": 2)"},
    {"Zero2ReducingEveryMicroStep", "zero2", 1, 3, R"("dp": 3, "accumulate": 2, "no_sync": false, "overlap": false)"},
    {"Hsdp", "hsdp", 2, 3, R"("dp": 6)"},
    {"HsdpReducingEveryMicroStep", "hsdp", 2, 2, R"("dp": 4, "accumulate": 2, "no_sync": false)"},
    {"Tensor", "tp", 1, 4, R"("dp": 1, "tp": 4)"},
    {"TensorWithReplicas", "tp", 1, 4, R"("dp": 2, "tp": 2, "accumulate": 2, "overlap": false)"},
    {"Sequence", "tp+sp", 1, 4, R"("dp": 1, "tp": 4)"},
    {"SequenceWithExperts", "tp+sp", 1, 8, R"("dp": 2, "tp": 4, "ep": 2)",
     R"("layers": 4, "hidden": 64, "seq": 32, "micro_batch": 2, "experts": 4)"},
    {"Interleaved", "pp", 1, 4,
     R"("dp": 1, "pp": 4, "schedule": "interleaved", "virtual_stages": 2, "micro_batches": 8)",
     R"("layers": 8, "hidden": 64, "seq": 32, "micro_batch": 2)"},
    {"InterleavedOfTwoStages", "pp", 2, 2,
     R"("dp": 2, "pp": 2, "schedule": "interleaved", "virtual_stages": 2, "micro_batches": 4)"},
    {"PipelineReducingEveryMicroBatch", "pp", 1, 4, R"("dp": 2, "pp": 2, "micro_batches": 3, "no_sync": false)"},
    {"Experts", "ep", 1, 4, R"("dp": 4, "ep": 4)", kExperts},
    {"ExpertsWithReplicas", "ep", 1, 4, R"("dp": 4, "ep": 2, "accumulate": 2)", kExperts},
    {"ThreeDimensions", "3d", 2, 4, R"("dp": 2, "tp": 2, "pp": 2, "micro_batches": 4)"},
    {"ThreeDimensionsWithExperts", "3d", 2, 4, R"("dp": 2, "tp": 2, "pp": 2, "ep": 2, "micro_batches": 4)", kExperts},
};

class ModelParallelJobs : public testing::TestWithParam<Job> {
  protected:
    void expectExact(const std::map<std::string, std::string>& environment) const {
        const Job& job = GetParam();
        const JobResult result = runJob(textOf(job), job.nodes * job.ranksPerNode, environment);
        for (size_t rank = 0; rank < result.status.size(); ++rank)
            EXPECT_EQ(result.status[rank], 0) << "rank " << rank << ": " << result.output[rank];
        EXPECT_NE(result.output[0].find("checksum"), std::string::npos) << result.output[0];
    }
};
INSTANTIATE_TEST_SUITE_P(Kinds, ModelParallelJobs, testing::ValuesIn(kJobs),
                         [](const auto& test) { return test.param.name; });

TEST_P(ModelParallelJobs, AreExact) {
    expectExact({});
}
TEST_P(ModelParallelJobs, AreExactInEveryElement) {
    expectExact({{"RANKSCOPE_VGPU_DATA", "full"}});
}

TEST(ExpertJobs, TokensToOtherRanksTravelAndOwnOnesStay) {
    // Forward and backward, to the experts and back: four exchanges per layer of B x S x H elements less the quarter
    // that stays.
    const Job job{"",
                  "ep",
                  1,
                  4,
                  R"("dp": 4, "ep": 4)",
                  R"("layers": 4, "hidden": 64, "seq": 32, "micro_batch": 2, "experts": 4)"};
    const JobResult result = runJob(textOf(job), 4);
    for (size_t rank = 0; rank < 4; ++rank) {
        const std::vector<size_t>& sent = result.calls[rank].at("send");
        EXPECT_EQ(sent.size(), 3u * 4 * 4 * 3) << "rank " << rank;
        EXPECT_EQ(std::set<size_t>(sent.begin(), sent.end()), std::set<size_t>{2 * 32 * 64 * 2 / 4});
    }
}

}  // namespace
}  // namespace rankscope::reference

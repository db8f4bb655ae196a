// SPDX-License-Identifier: Apache-2.0
// RS206 (the same gradients on every micro-step) and RS210 (fp32 gradients of a 16-bit model).
#include <gtest/gtest.h>

#include "tests/unit/analyzer/player.h"

namespace rankscope::diagnose {
namespace {

using store::Op;

constexpr const char* kEvenLinks = "intra:gbps=100,alpha_us=5;inter:gbps=100,alpha_us=5";

struct Accumulation {
    int microSteps = 4;
    bool everyMicroStep = true;
    double bytes = 100e6;  // per layer, 2.2 ms
    double backwardNs = 2e6;
    store::DataType type = store::DataType::bf16;
    const char* kernel = "gemm<__nv_bfloat16>";
};

report::Report playSteps(const Accumulation& job) {
    test::Player player(8, 8, kEvenLinks);
    player.trace.dataType(job.type);
    const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
    for (int step = 0; step < 6; ++step) {
        for (int micro = 0; micro < job.microSteps; ++micro) {
            for (int layer = 0; layer < 8; ++layer) player.compute(job.backwardNs / 2, job.kernel);
            for (int layer = 0; layer < 8; ++layer) {
                player.compute(job.backwardNs, job.kernel, 96);
                if (job.everyMicroStep || micro + 1 == job.microSteps)
                    player.beside(world, Op::allReduce, job.bytes, 70e3 + job.bytes * 1.75 / 100);
            }
            player.meet();
        }
        player.endStep();
    }
    return player.trace.analyze();
}

bool has(const report::Report& report, const std::string& id) {
    return test::Player::found(report).find(id) != std::string::npos;
}

TEST(Redundant, ReductionOnEveryMicroStepIsFound) {
    Accumulation job;
    job.bytes = 200e6;
    const report::Report report = playSteps(job);
    ASSERT_TRUE(has(report, "RS206")) << test::Player::found(report);
    Accumulation fixed = job;
    fixed.everyMicroStep = false;
    EXPECT_NEAR(report.findings.at(0).worthNs(), report.run.stepNs - playSteps(fixed).run.stepNs,
                0.03 * report.run.stepNs);
    EXPECT_FALSE(has(playSteps(fixed), "RS206"));
}

TEST(Redundant, EqualBucketsOfOneBackwardAreNoRepeats) {
    Accumulation job;
    job.microSteps = 1;
    job.bytes = 200e6;
    EXPECT_FALSE(has(playSteps(job), "RS206"));
}

TEST(Redundant, HiddenRepeatsAreUnderTheFloor) {
    Accumulation job;
    job.bytes = 20e6;
    job.backwardNs = 4e6;
    EXPECT_EQ(test::Player::found(playSteps(job)), "");
}

TEST(FullPrecision, ExposedFp32GradientsOfA16BitModelAreFound) {
    Accumulation job;
    job.microSteps = 1;
    job.bytes = 200e6;
    job.type = store::DataType::f32;
    const report::Report report = playSteps(job);
    ASSERT_TRUE(has(report, "RS210")) << test::Player::found(report);
    Accumulation fixed = job;
    fixed.type = store::DataType::bf16;
    fixed.bytes = 100e6;
    // Half the bytes still keep the link busy for most of backward: what of them sticks out is volume (RS203).
    ASSERT_EQ(test::Player::found(report), "RS210[0 1 2 3 4 5 6 7] RS203[0 1 2 3 4 5 6 7]");
    EXPECT_NEAR(report.findings[0].worthNs(), report.run.stepNs - playSteps(fixed).run.stepNs,
                0.03 * report.run.stepNs);
}

TEST(FullPrecision, SilentForAnFp32ModelFor16BitGradientsAndWhenHidden) {
    Accumulation job;
    job.microSteps = 1;
    job.bytes = 200e6;
    EXPECT_FALSE(has(playSteps(job), "RS210"));
    job.type = store::DataType::f32;
    job.kernel = "gemm<float>";
    EXPECT_FALSE(has(playSteps(job), "RS210"));
    job.kernel = "gemm<__nv_bfloat16>";
    job.bytes = 20e6;
    EXPECT_EQ(test::Player::found(playSteps(job)), "");
}

}  // namespace
}  // namespace rankscope::diagnose

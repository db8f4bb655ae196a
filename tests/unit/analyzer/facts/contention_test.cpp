// SPDX-License-Identifier: Apache-2.0
// RS207 (tensor parallelism between nodes) and RS209 (communication slows compute).
#include <gtest/gtest.h>

#include "tests/unit/analyzer/player.h"

namespace rankscope::facts {
namespace {

using store::Op;

/// Forward alone, backward of the same kernels beside communication; `factor` slows what runs beside it.
report::Report playBeside(double factor) {
    test::Player player(4, 4, "intra:gbps=100,alpha_us=5");
    const int world = player.communicator({0, 1, 2, 3});
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 8; ++layer) player.compute(2e6);
        player.compute(1e6, "head");
        for (int layer = 0; layer < 8; ++layer) {
            player.beside(world, Op::allReduce, 100e6, 1.5e6);
            player.compute(2e6 + 1.5e6 * (factor - 1) / factor);
        }
        player.endStep();
    }
    return player.trace.analyze();
}

TEST(Contention, ComputeThatSlowsBesideCommunicationIsFound) {
    const report::Report report = playBeside(1.5);
    ASSERT_EQ(test::Player::found(report), "RS209[0 1 2 3]");
    EXPECT_NEAR(report.findings[0].worthNs(), report.run.stepNs - playBeside(1).run.stepNs, 0.03 * report.run.stepNs);
}

TEST(Contention, SilentWhenHealthyAndJustUnderTheThreshold) {
    EXPECT_EQ(test::Player::found(playBeside(1)), "");
    EXPECT_EQ(test::Player::found(playBeside(1.04)), "");
}

/// Buckets shorter than a backward kernel: one kernel never runs alone, the next is beside communication for a part of
/// its time, the first of a step is alone. Kernels vary by some percent.
report::Report playPartlyBeside(double factor, int steps = 8) {
    test::Player player(4, 4, "intra:gbps=100,alpha_us=5");
    const int world = player.communicator({0, 1, 2, 3});
    const double transfer = 1.2e6, norm = 0.6e6;
    for (int step = 0; step < steps; ++step) {
        for (int layer = 0; layer < 8; ++layer) player.compute(2e6, "forward");
        for (int layer = 0; layer < 9; ++layer) {
            const double noise = 1 + 0.02 * ((layer + 3 * step) % 5 - 2);
            if (layer > 0) {
                player.beside(world, Op::allReduce, 80e6, transfer);
                player.compute(norm * factor, "norm");
            }
            const double covered = layer > 0 ? transfer - norm * factor : 0;
            player.compute(2e6 * noise + covered * (factor - 1) / factor, "backward");
        }
        player.endStep();
    }
    return player.trace.analyze();
}

TEST(Contention, KernelsBesideCommunicationForAPartOfTheirTimeTell) {
    const report::Report report = playPartlyBeside(1.5);
    ASSERT_EQ(test::Player::found(report), "RS209[0 1 2 3]");
    EXPECT_NEAR(report.findings[0].worthNs(), report.run.stepNs - playPartlyBeside(1).run.stepNs,
                0.03 * report.run.stepNs);
}

TEST(Contention, PartlyBesideIsSilentWhenHealthyAndUnderTheFloor) {
    EXPECT_EQ(test::Player::found(playPartlyBeside(1)), "");
    EXPECT_EQ(test::Player::found(playPartlyBeside(1.08)), "");
}

TEST(Contention, OneNameForDifferentWorkIsNoMeasure) {
    test::Player player(4, 4, "intra:gbps=100,alpha_us=5");
    const int world = player.communicator({0, 1, 2, 3});
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 8; ++layer) player.compute(layer % 2 == 0 ? 1e6 : 4e6);
        for (int layer = 0; layer < 8; ++layer) {
            player.beside(world, Op::allReduce, 100e6, 1.5e6);
            player.compute(4e6);
        }
        player.endStep();
    }
    EXPECT_EQ(test::Player::found(player.trace.analyze()), "");
}

TEST(Contention, ATailOfLongKernelsAloneIsWorkThatDependsOnTheData) {
    // Five in six kernels alone are alike, the others take what those beside communication take: documents of another
    // length.
    test::Player player(4, 4, "intra:gbps=100,alpha_us=5");
    const int world = player.communicator({0, 1, 2, 3});
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 12; ++layer) player.compute(layer % 6 == 0 ? 3.4e6 : 2e6, "attention");
        for (int layer = 0; layer < 8; ++layer) {
            player.beside(world, Op::allReduce, 100e6, 1.5e6);
            player.compute(3.4e6, "attention");
        }
        player.endStep();
    }
    EXPECT_EQ(test::Player::found(player.trace.analyze()), "");
}

TEST(Contention, OneNameAndGridInForwardAndInBackwardIsNoMeasureWhereOtherKernelsFollow) {
    // Outputs of one shape, summed over 1024 rows in forward and over 6144 in backward.
    test::Player player(4, 4, "intra:gbps=100,alpha_us=5");
    const int world = player.communicator({0, 1, 2, 3});
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 8; ++layer) player.compute(1e6, "gemm"), player.compute(0.5e6, "gelu");
        for (int layer = 0; layer < 8; ++layer) {
            player.beside(world, Op::allReduce, 100e6, 1.5e6);
            player.compute(3e6, "gemm");
            player.compute(0.5e6, "gelu_backward");
        }
        player.endStep();
    }
    EXPECT_EQ(test::Player::found(player.trace.analyze()), "");
}

TEST(Contention, FourKernelsAloneAreTooFewToSayThatTheyAreEqual) {
    EXPECT_EQ(test::Player::found(playPartlyBeside(1.5, 6)), "RS209[0 1 2 3]") << "one alone in each of five steps";
    EXPECT_EQ(test::Player::found(playPartlyBeside(1.5, 5)), "");
}

TEST(Contention, KernelsOfMicrosecondsTellOfLatenciesOnly) {
    // As an A100 beside all-to-alls shows: kernels of 6 us take 12, those of 2 ms as long as ever.
    test::Player player(4, 4, "intra:gbps=100,alpha_us=5");
    const int world = player.communicator({0, 1, 2, 3});
    for (int step = 0; step < 6; ++step) {
        for (int kernel = 0; kernel < 200; ++kernel) player.compute(6e3, "norm");
        for (int layer = 0; layer < 4; ++layer) player.compute(2e6, "gemm");
        for (int layer = 0; layer < 4; ++layer) {
            player.beside(world, Op::allReduce, 200e6, 3.1e6);
            player.compute(2e6, "gemm");
            for (int kernel = 0; kernel < 50; ++kernel) player.compute(12e3, "norm");
        }
        player.endStep();
    }
    EXPECT_EQ(test::Player::found(player.trace.analyze()).find("RS209"), std::string::npos);
}

struct Tensor {
    bool apart = true;  // groups of neighbours on two nodes, else inside one
    double bytes = 30e6;
    double computeNs = 1e6;
    bool linksKnown = true;
};

report::Report playTensor(const Tensor& job) {
    const double intra = 200, inter = 25;
    test::Player player(8, job.apart ? 2 : 4,
                        job.linksKnown ? "intra:gbps=200,alpha_us=5;inter:gbps=25,alpha_us=10" : "");
    const std::vector<int> tensor{player.communicator({0, 1, 2, 3}), player.communicator({4, 5, 6, 7})};
    const double rate = job.apart ? 2 * inter : intra, alpha = job.apart ? 10e3 : 5e3;
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 24; ++layer) {
            player.compute(job.computeNs * (layer < 8 ? 0.5 : 1.25) *
                           (layer % 2 == 0 ? 0.8 : 1.2));  // attention and MLP, forward and backward
            player.blocking(tensor, Op::allReduce, job.bytes, {6 * alpha + job.bytes * 1.5 / rate});
        }
        player.endStep();
    }
    return player.trace.analyze();
}

TEST(TensorParallelSpan, GroupsAcrossNodesAreFound) {
    const report::Report report = playTensor({});
    ASSERT_EQ(test::Player::found(report), "RS207[0 1 2 3 4 5 6 7]");
    Tensor inside;
    inside.apart = false;
    const report::Report fixed = playTensor(inside);
    EXPECT_EQ(test::Player::found(fixed), "");
    EXPECT_NEAR(report.findings[0].worthNs(), report.run.stepNs - fixed.run.stepNs, 0.03 * report.run.stepNs);
    EXPECT_NE(report.findings[0].fix.at(0).find("degree 2"), std::string::npos) << report.findings[0].fix[0];
}

TEST(TensorParallelSpan, WithoutPeaksItIsInconclusive) {
    Tensor job;
    job.linksKnown = false;
    EXPECT_EQ(test::Player::found(playTensor(job)), "RS207?[0 1 2 3 4 5 6 7]");
}

TEST(TensorParallelSpan, UnderTheFloorWhenTheMessagesAreShort) {
    Tensor job;
    job.bytes = 200e3;
    job.computeNs = 4e6;
    const report::Report report = playTensor(job);
    EXPECT_EQ(test::Player::found(report).find("RS207"), std::string::npos) << test::Player::found(report);
}

}  // namespace
}  // namespace rankscope::facts

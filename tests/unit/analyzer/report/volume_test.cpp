// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/volume.h"

#include <gtest/gtest.h>

namespace rankscope::report {
namespace {

constexpr double kMiB = 1 << 20;

/// A job on paper of one analysed step: operations of one communicator, each of some bytes of bf16.
class PaperJob {
  public:
    explicit PaperJob(int ranks) {
        facts::Communicator& communicator = m_analysis.facts.communicators[1];
        communicator.id = 1;
        communicator.size = ranks;
        for (int rank = 0; rank < ranks; ++rank) communicator.ranks.push_back(rank);
        m_analysis.steps = {3};
    }
    void play(store::Op op, facts::CommRole role, double bytes, int step = 3,
              store::DataType type = store::DataType::bf16) {
        store::Collective collective;
        collective.communicatorId = 1;
        collective.op = op;
        collective.bytes = static_cast<int64_t>(bytes);
        collective.dataType = type;
        collective.step = step;
        m_analysis.facts.collectives.push_back(collective);
        m_analysis.layout.uses[1][op] = {role, 1};
    }
    job::Analysis& analysis() { return m_analysis; }
    VolumeRow row() const { return volumesOf(m_analysis).at(0); }

  private:
    job::Analysis m_analysis;
};

TEST(Volume, ParametersThatAreGatheredForEachPassMoveThreeTimesTheGradients) {
    PaperJob job(4);
    job.analysis().layout.zero = 3;
    for (int pass = 0; pass < 2; ++pass) job.play(store::Op::allGather, facts::CommRole::shardedParameters, 100 * kMiB);
    job.play(store::Op::reduceScatter, facts::CommRole::shardedParameters, 100 * kMiB);
    job.play(store::Op::allGather, facts::CommRole::shardedParameters, 700 * kMiB, 2);  // of a step that warms up
    const VolumeRow row = job.row();
    EXPECT_DOUBLE_EQ(row.busBytes, 225 * kMiB);
    EXPECT_DOUBLE_EQ(row.expectedBytes.value(), 225 * kMiB);
    EXPECT_EQ(volumeText(row),
              "ZeRO-3 moves 225 MiB of each rank and step, 1.00x the 3 N (n-1)/n that it has to; N, the gradients, 100 "
              "MiB");
    job.play(store::Op::allGather, facts::CommRole::shardedParameters, 100 * kMiB);
    EXPECT_DOUBLE_EQ(job.row().busBytes / job.row().expectedBytes.value(), 4.0 / 3);
}

TEST(Volume, ParametersOfAnotherTypeThanGradientsCountInTheirs) {
    PaperJob job(2);
    job.analysis().layout.zero = 3;
    job.play(store::Op::allGather, facts::CommRole::shardedParameters, 200 * kMiB);
    job.play(store::Op::reduceScatter, facts::CommRole::shardedParameters, 200 * kMiB, 3, store::DataType::f32);
    // Gathered twice it would be 2 x 100 MiB beside 200.
    EXPECT_DOUBLE_EQ(job.row().expectedBytes.value(), 200 * kMiB);
}

TEST(Volume, OfAllReducesNothingIsExpectedSinceTheyThemselvesTellN) {
    PaperJob job(8);
    job.analysis().layout.zero = 0;
    job.play(store::Op::allReduce, facts::CommRole::gradients, 80 * kMiB);
    const VolumeRow row = job.row();
    EXPECT_DOUBLE_EQ(row.busBytes, 140 * kMiB);
    EXPECT_FALSE(row.expectedBytes);
    EXPECT_NE(row.open, "");
    EXPECT_DOUBLE_EQ(row.gradientBytes.value(), 80 * kMiB);
}

TEST(Volume, WhatTheModelTellsIsUnknown) {
    PaperJob job(2);
    job.play(store::Op::allReduce, facts::CommRole::activations, kMiB);
    EXPECT_FALSE(job.row().expectedBytes);
    EXPECT_NE(volumeText(job.row()).find("unknown"), std::string::npos);
    EXPECT_TRUE(volumesOf(PaperJob(2).analysis()).empty());
}

TEST(AdamStates, AreThoseOfTheStage) {
    // 7.5 billion parameters on 64 devices: ZeRO's own example, in GB (arXiv:1910.02054, figure 1).
    const auto gigabytes = [](int stage) { return adamStateBytes(stage, 7.5e9, 2, 64).value() / 1e9; };
    EXPECT_NEAR(gigabytes(0), 120, 0.05);
    EXPECT_NEAR(gigabytes(1), 31.4, 0.05);
    EXPECT_NEAR(gigabytes(2), 16.6, 0.05);
    EXPECT_NEAR(gigabytes(3), 1.9, 0.05);
    EXPECT_DOUBLE_EQ(adamStateBytes(0, 10, 4, 8).value(), 160);
    EXPECT_FALSE(adamStateBytes(0, 10, 1, 8));
    EXPECT_FALSE(adamStateBytes(4, 10, 2, 8));
}

TEST(AdamStates, StandBesideThePeakWhereItHoldsThem) {
    VolumeRow row;
    row.strategy = "ZeRO-3";
    row.adamStateBytes = 3 * kMiB;
    MemoryRow peak;
    peak.heldBytes = 8 << 20;
    EXPECT_NE(statesText({row}, {peak}).find("8 MiB"), std::string::npos);
    peak.heldBytes = 2 << 20;
    EXPECT_EQ(statesText({row}, {peak}), "");
    EXPECT_EQ(statesText({row}, {}), "");
}

}  // namespace
}  // namespace rankscope::report

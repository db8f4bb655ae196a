// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/volume.h"

#include <gtest/gtest.h>

namespace rankscope::report {
namespace {

constexpr double kMiB = 1 << 20;

/// A job on paper of one analysed step: operations of groups of ranks, each of some bytes.
class PaperJob {
  public:
    explicit PaperJob(int ranks) {
        m_analysis.steps = {3};
        for (int rank = 0; rank < ranks; ++rank) {
            facts::RankFacts& facts = m_analysis.facts.ranks.emplace_back();
            facts.rank = rank;
            facts.steps = {{.step = 3, .startNs = 1000, .durNs = 1000, .warmUp = false}};
        }
        addGroup(1, ranks);
    }
    void addGroup(int64_t id, int ranks) {
        facts::Communicator& communicator = m_analysis.facts.communicators[id];
        communicator.id = id;
        communicator.size = ranks;
        for (int rank = 0; rank < ranks; ++rank) communicator.ranks.push_back(rank);
    }
    void play(store::Op op, facts::CommRole role, double bytes, int step = 3,
              store::DataType type = store::DataType::bf16, int64_t group = 1) {
        store::Collective collective;
        collective.communicatorId = group;
        collective.op = op;
        if (bytes >= 0) collective.bytes = static_cast<int64_t>(bytes);
        collective.dataType = type;
        collective.step = step;
        m_analysis.facts.collectives.push_back(collective);
        m_analysis.layout.uses[group][op] = {role, 1};
    }
    /// Before the first step.
    void broadcast(double bytes, int64_t endNs = 900) {
        store::Collective collective;
        collective.communicatorId = 1;
        collective.op = store::Op::broadcast;
        collective.bytes = static_cast<int64_t>(bytes);
        collective.endNs = endNs;
        m_analysis.facts.collectives.push_back(collective);
    }
    job::Analysis& analysis() { return m_analysis; }
    VolumeRow row() const { return volumesOf(m_analysis).at(0); }

  private:
    job::Analysis m_analysis;
};

void playSharded(PaperJob& job, int gatherings, int reductions = 1) {
    job.analysis().layout.zero = 3;
    for (int i = 0; i < gatherings; ++i) job.play(store::Op::allGather, facts::CommRole::shardedParameters, 100 * kMiB);
    for (int i = 0; i < reductions; ++i)
        job.play(store::Op::reduceScatter, facts::CommRole::shardedParameters, 100 * kMiB);
}

TEST(Volume, ParametersThatAreGatheredForEachPassMoveThreeTimesTheGradients) {
    PaperJob job(4);
    playSharded(job, 2);
    job.play(store::Op::allGather, facts::CommRole::shardedParameters, 700 * kMiB, 2);  // of a step that warms up
    const VolumeRow row = job.row();
    EXPECT_DOUBLE_EQ(row.busBytes.value(), 225 * kMiB);
    EXPECT_DOUBLE_EQ(row.expectedBytes.value(), 225 * kMiB);
    EXPECT_EQ(volumeText(row),
              "ZeRO-3 moves 225 MiB a rank and step, 1.00x the 3 N (n-1)/n of one pass; 100 MiB of gradients are "
              "reduced: N");
}

TEST(Volume, GatheringsOfMicroStepsThatReduceOnceAreTold) {
    PaperJob job(4);
    playSharded(job, 8);
    const VolumeRow row = job.row();
    EXPECT_DOUBLE_EQ(row.busBytes.value() / row.expectedBytes.value(), 3);
    EXPECT_DOUBLE_EQ(row.gatherings.value(), 8);
    EXPECT_NE(volumeText(row).find("as in 4 micro-steps of which the last reduces"), std::string::npos);

    PaperJob thrice(4);
    playSharded(thrice, 3);
    EXPECT_DOUBLE_EQ(thrice.row().busBytes.value() / thrice.row().expectedBytes.value(), 4.0 / 3);
    EXPECT_EQ(volumeText(thrice.row()).find("micro-steps"), std::string::npos);
}

TEST(Volume, OfSeveralGroupsOfOneRankAllIsSummed) {
    PaperJob job(4);
    playSharded(job, 2);
    job.addGroup(2, 2);  // two of the four ranks shard something else among them, too
    for (const store::Op op : {store::Op::allGather, store::Op::allGather, store::Op::reduceScatter})
        job.play(op, facts::CommRole::shardedParameters, 40 * kMiB, 3, store::DataType::bf16, 2);
    EXPECT_DOUBLE_EQ(job.row().busBytes.value(), (225 + 60 / 2.0) * kMiB);
    EXPECT_DOUBLE_EQ(job.row().expectedBytes.value(), (225 + 60 / 2.0) * kMiB);
    EXPECT_FALSE(job.row().adamStateBytes);
}

TEST(Volume, ParametersOfAnotherTypeThanGradientsCountInTheirs) {
    PaperJob job(2);
    job.analysis().layout.zero = 3;
    job.play(store::Op::allGather, facts::CommRole::shardedParameters, 200 * kMiB);
    job.play(store::Op::reduceScatter, facts::CommRole::shardedParameters, 200 * kMiB, 3, store::DataType::f32);
    // Gathered twice it would be 2 x 100 MiB beside 200.
    EXPECT_DOUBLE_EQ(job.row().expectedBytes.value(), 200 * kMiB);
}

TEST(Volume, AllReducesBeforeAGatheringMoveHalfAsMuchAgainAsStageOneHasTo) {
    PaperJob job(4);
    job.analysis().layout.zero = 1;
    job.play(store::Op::allReduce, facts::CommRole::gradients, 100 * kMiB);
    job.play(store::Op::allGather, facts::CommRole::gradients, 100 * kMiB);
    EXPECT_DOUBLE_EQ(job.row().expectedBytes.value(), 150 * kMiB);
    EXPECT_DOUBLE_EQ(job.row().busBytes.value(), 225 * kMiB);
}

TEST(Volume, CopiesOfShardsReduceAShardAmongThem) {
    PaperJob job(4);
    playSharded(job, 2);
    job.analysis().layout.replicate = 2;
    job.addGroup(2, 2);
    job.play(store::Op::allReduce, facts::CommRole::replicas, 25 * kMiB, 3, store::DataType::bf16, 2);
    const VolumeRow row = job.row();
    EXPECT_EQ(row.strategy, "HSDP");
    EXPECT_DOUBLE_EQ(row.expectedBytes.value(), (225 + 25) * kMiB);
    EXPECT_DOUBLE_EQ(row.busBytes.value(), (225 + 25) * kMiB);
}

/// FSDP with hybrid shards that stay gathered until backward.
TEST(Volume, TheFormulaOfCopiesNamesTheOneGatheringOfParametersThatStayWhole) {
    PaperJob job(4);
    playSharded(job, 1);
    job.analysis().layout.zero = 2;
    job.analysis().layout.replicate = 2;
    job.addGroup(2, 2);
    job.play(store::Op::allReduce, facts::CommRole::replicas, 25 * kMiB, 3, store::DataType::bf16, 2);
    const VolumeRow row = job.row();
    EXPECT_DOUBLE_EQ(row.expectedBytes.value(), (150 + 25) * kMiB);
    EXPECT_EQ(row.formula, std::string("2 N (s-1)/s + 2 N/s (r-1)/r"));
}

TEST(Volume, StagesThatWereNotRecordedHaveNoPartInTheMeanOfAPipeline) {
    PaperJob job(4);
    job.analysis().layout.pipelines.emplace_back().stages = {0, 1, 2, 3};
    for (const int rank : {0, 1}) {
        job.analysis().facts.ranks[static_cast<size_t>(rank)].recorded = true;
        store::P2p& message = job.analysis().facts.pointToPoint.change()->emplace_back();
        message.srcRank = rank;
        message.dstRank = rank + 1;
        message.bytes = 10 << 20;
        message.sendArrivalNs = 1500;
    }
    EXPECT_DOUBLE_EQ(job.row().busBytes.value(), 10 * kMiB);
}

TEST(Volume, OfAllReducesNothingIsExpectedWhereTheSizeOfTheModelIsNotKnown) {
    PaperJob job(8);
    job.analysis().layout.zero = 0;
    job.play(store::Op::allReduce, facts::CommRole::gradients, 80 * kMiB);
    const VolumeRow row = job.row();
    EXPECT_DOUBLE_EQ(row.busBytes.value(), 140 * kMiB);
    EXPECT_FALSE(row.expectedBytes);
    EXPECT_EQ(row.open, "nothing told the size of the model");
    EXPECT_DOUBLE_EQ(row.gradientBytes.value(), 80 * kMiB);
}

TEST(Volume, WhatIsBroadcastBeforeTheFirstStepTellsTheModel) {
    PaperJob job(8);
    job.analysis().layout.zero = 0;
    for (int microStep = 0; microStep < 2; ++microStep)
        job.play(store::Op::allReduce, facts::CommRole::gradients, 80 * kMiB);
    job.broadcast(60 * kMiB);
    job.broadcast(20 * kMiB);
    job.broadcast(500 * kMiB, 5000);  // behind the steps
    const VolumeRow row = job.row();
    EXPECT_DOUBLE_EQ(row.expectedBytes.value(), 140 * kMiB);
    EXPECT_NE(volumeText(row).find("2.00x the 2 N (n-1)/n of one pass; N is what was broadcast"), std::string::npos);

    // Less than gradients could be: what was broadcast is not what is reduced.
    job.broadcast(400 * kMiB);
    EXPECT_FALSE(job.row().expectedBytes);
    EXPECT_NE(job.row().open.find("480 MiB were broadcast"), std::string::npos);
}

TEST(Volume, SizesThatAreNotRecordedAreNotZero) {
    PaperJob job(4);
    playSharded(job, 2);
    job.play(store::Op::allGather, facts::CommRole::shardedParameters, -1);
    EXPECT_FALSE(job.row().busBytes);
    EXPECT_EQ(volumeText(job.row()),
              "ZeRO-3: what it moves is not known, the sizes of some of its operations are not recorded");
    PaperJob typeless(4);
    playSharded(typeless, 2);
    typeless.play(store::Op::reduceScatter, facts::CommRole::shardedParameters, kMiB, 3, store::DataType::unknown);
    EXPECT_FALSE(typeless.row().expectedBytes);
    EXPECT_TRUE(typeless.row().busBytes);
}

TEST(Volume, WhatTheModelTellsIsNotKnown) {
    PaperJob job(2);
    job.play(store::Op::allReduce, facts::CommRole::activations, kMiB);
    EXPECT_FALSE(job.row().expectedBytes);
    EXPECT_NE(volumeText(job.row()).find("not known"), std::string::npos);
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

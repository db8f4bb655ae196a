// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/edits/edit.h"
#include "tests/unit/analyzer/found.h"
#include "tests/unit/analyzer/jobs.h"

namespace rankscope::diagnose {
namespace {

TEST(Bubble, TooFewMicroBatchesAreFoundForBothSchedules) {
    for (bool gpipe : {true, false}) {
        test::PipelineJob job;
        job.ranks = 4;
        job.microBatches = 6;
        job.gpipe = gpipe;
        const report::Report report = test::playPipeline(job).analyze();
        ASSERT_EQ(test::foundIn(report), "RS101[0 1 2 3]") << "gpipe " << gpipe;
        EXPECT_EQ(report.layout.schedule, gpipe ? "gpipe" : "1f1b");
        EXPECT_NE(report.findings[0].cause.find("too few micro-batches: 6 over 4 stages"), std::string::npos)
            << report.findings[0].cause;
        // At equal tokens: the step of 30 micro-batches over five.
        test::PipelineJob fixed = job;
        fixed.microBatches = 30;
        const double measured = report.run.stepNs - test::playPipeline(fixed).analyze().run.stepNs / 5;
        EXPECT_GE(report.findings[0].costNs, measured);  // no number of micro-batches takes all of a bubble away
        EXPECT_LE(report.findings[0].costNs, measured + 0.1 * report.run.stepNs);
    }
}

TEST(Bubble, UnderTheThresholdTheScheduleExplainsIt) {
    test::PipelineJob job;
    job.ranks = 4;
    job.microBatches = 30;  // 3 / 33 = 9.1 %
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "");
}

TEST(Bubble, InterleavedStagesHaveASmallerOne) {
    test::PipelineJob job;
    job.ranks = 4;
    job.virtualStages = 2;
    job.microBatches = 16;  // 3 / (16 x 2 + 3) = 8.6 %; 15.8 % without interleaving
    job.messageBytes = 1e6;
    job.wire.alphaNs = 5e3;
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "");
    job.microBatches = 8;  // 3 / 19 = 15.8 %
    const report::Report report = test::playPipeline(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS101[0 1 2 3]");
    EXPECT_NE(report.findings[0].cause.find("(P-1)/(M V + P-1) = 15.8 %"), std::string::npos)
        << report.findings[0].cause;
    test::PipelineJob fixed = job;
    fixed.microBatches = 16;
    const double measured = report.run.stepNs - test::playPipeline(fixed).analyze().run.stepNs / 2;
    EXPECT_GE(report.findings[0].costNs, measured);
    EXPECT_LE(report.findings[0].costNs, measured + 0.1 * report.run.stepNs);
}

TEST(Bubble, WhatAStragglerExplainsIsNotABubble) {
    test::PipelineJob job;
    job.ranks = 4;
    job.microBatches = 32;
    job.slow = {{2, 1.6}};
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "RS301[2]");
}

TEST(Bubble, FewMicroBatchesBesideAStragglerAreBothFound) {
    test::PipelineJob job;
    job.ranks = 4;
    job.microBatches = 4;
    job.slow = {{1, 1.3}};
    const report::Report report = test::playPipeline(job).analyze();
    std::string ids = test::idsIn(report);
    EXPECT_TRUE(ids == "RS101 RS301" || ids == "RS301 RS101") << ids;
    double severity = 0;
    for (const job::Finding& f : report.findings) severity += f.severity;
    EXPECT_LT(severity, 0.75) << "time counted twice";
}

TEST(StageImbalance, TheHeavyStageIsNamedWithItsRanksAndNothingElse) {
    for (int stage : {0, 1, 3}) {
        for (int replicas : {1, 2}) {
            test::PipelineJob job;
            job.ranks = 4 * replicas;
            job.heavy = {{stage, 1.5}};
            const report::Report report = test::playPipeline(job).analyze();
            const std::string ranks =
                replicas == 1 ? fmt::format("{}", stage) : fmt::format("{} {}", 2 * stage, 2 * stage + 1);
            EXPECT_EQ(test::foundIn(report), "RS102[" + ranks + "]");
        }
    }
}

TEST(StageImbalance, SavingIsTheBeatOfTheMeanStage) {
    test::PipelineJob job;
    job.ranks = 4;
    job.heavy = {{2, 1.6}};
    test::PipelineJob balanced = job;
    balanced.heavy = {{0, 1.15}, {1, 1.15}, {2, 1.15}, {3, 1.15}};  // the same work, spread
    const report::Report before = test::playPipeline(job).analyze(), after = test::playPipeline(balanced).analyze();
    ASSERT_EQ(test::foundIn(before), "RS102[2]");
    EXPECT_NEAR(before.findings[0].worthNs(), before.run.stepNs - after.run.stepNs, 0.03 * before.run.stepNs);
    EXPECT_EQ(before.findings[0].affectedRanks, (std::vector<int>{0, 1, 3}));
}

TEST(StageImbalance, JustUnderTheThresholdIsSilent) {
    test::PipelineJob job;
    job.ranks = 4;
    job.noise = 0.01;
    job.heavy = {{1, 1.05}};  // 3.7 % over the mean
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "");
}

TEST(StageImbalance, JustOverTheThresholdIsFound) {
    test::PipelineJob job;
    job.ranks = 4;
    job.noise = 0.01;
    job.messageBytes = 1e6;
    job.wire.alphaNs = 5e3;  // slow messages would hide a beat that differs this little
    job.heavy = {{1, 1.08}};
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "RS102[1]");
}

TEST(StageImbalance, ASlowDeviceIsAStragglerNotAHeavyStage) {
    test::PipelineJob job;
    job.ranks = 4;
    job.slow = {{1, 1.5}};
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "RS301[1]");
}

TEST(StageImbalance, HoldsForInterleavedSchedules) {
    test::PipelineJob job;
    job.ranks = 4;
    job.virtualStages = 2;
    job.microBatches = 24;
    job.messageBytes = 1e6;  // longer ones would be a finding of their own: interleaved stages send twice as many
    job.wire.alphaNs = 5e3;
    job.heavy = {{3, 1.5}};
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "RS102[3]");
}

TEST(ExposedP2p, LongMessagesAreFoundAndShortOnesAreNot) {
    test::PipelineJob job;
    job.ranks = 4;
    job.forwardNs = 2e6;
    job.messageBytes = 80e6;  // 0.8 ms beside 6 ms of forward and backward
    const report::Report report = test::playPipeline(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS103[0 1 2 3]");
    test::PipelineJob quick = job;
    quick.messageBytes = 1;
    quick.wire.alphaNs = 0;
    const report::Report without = test::playPipeline(quick).analyze();
    EXPECT_EQ(test::foundIn(without), "");
    const double measured = report.run.stepNs - without.run.stepNs;
    EXPECT_LE(report.findings[0].costNs, measured + 0.01 * report.run.stepNs);
    EXPECT_GE(report.findings[0].costNs, 0.7 * measured);  // what neighbours wait for in turn is seen as waiting
}

TEST(ExposedP2p, TheMessagesOfAllPipelinesAreOneChange) {
    job::Analysis analysis;
    for (const int id : {1, 2, 3, 5, 6}) {
        analysis.layout.roles[id] = id == 6 ? facts::CommRole::gradients : facts::CommRole::pipeline;
        analysis.facts.communicators[id].ranks = {2 * id, 2 * id + 1};
    }
    analysis.replay.leftOut = {6, 7};  // other replicas stand for communicator 3
    EXPECT_EQ(findDiagnosis("RS103")->repair(analysis, {}),
              std::vector{edits::parseChange("speed:factor=inf,communicator=1-2+5")});
}

TEST(ExposedP2p, JustUnderTheThresholdIsANote) {
    test::PipelineJob job;
    job.ranks = 4;
    job.forwardNs = 10e6;
    job.messageBytes = 65e6;  // 0.71 ms beside 30 ms
    const report::Report report = test::playPipeline(job).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_EQ(report.notes[0].id, "RS103");
}

TEST(ExposedP2p, TheOnlyBoundaryOfTwoNodesMayCostATenth) {
    test::PipelineJob job;
    job.ranks = job.stages = 2;
    job.messageBytes = 30e6;  // 0.36 ms beside 6 ms
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "RS103[0 1]");
    job.ranksPerHost = 1;
    const report::Report report = test::playPipeline(job).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_EQ(report.notes[0].id, "RS103");
    job.messageBytes = 80e6;
    EXPECT_EQ(test::foundIn(test::playPipeline(job).analyze()), "RS103[0 1]");
}

}  // namespace
}  // namespace rankscope::diagnose

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analyzer/diagnose/detect.h"
#include "analyzer/diagnose/price.h"
#include "tests/unit/analyzer/found.h"
#include "tests/unit/analyzer/jobs.h"

namespace rankscope::diagnose {
namespace {

double savingShare(const report::Report& report, size_t finding = 0) {
    return report.findings.at(finding).worthNs() / report.run.stepNs;
}

TEST(Healthy, JobsOfAnyShapeHaveNoFinding) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
        for (int ranks : {2, 3, 8, 16}) {
            for (double noise : {0.0, 0.05}) {
                test::DdpJob ddp;
                ddp.ranks = ranks;
                ddp.noise = noise;
                ddp.seed = seed;
                EXPECT_EQ(test::foundIn(test::playDdp(ddp).analyze()), "")
                    << "ddp " << ranks << " ranks, noise " << noise << ", seed " << seed;
                test::FsdpJob fsdp;
                fsdp.ranks = ranks;
                fsdp.noise = noise;
                fsdp.seed = seed;
                EXPECT_EQ(test::foundIn(test::playFsdp(fsdp).analyze()), "")
                    << "fsdp " << ranks << " ranks, noise " << noise << ", seed " << seed;
            }
        }
        test::PipelineJob pipeline;
        pipeline.ranks = 8;
        pipeline.stages = 4;
        pipeline.noise = 0.05;
        pipeline.seed = seed;
        EXPECT_EQ(test::foundIn(test::playPipeline(pipeline).analyze()), "") << "seed " << seed;
    }
}

TEST(Straggler, IsFoundInEveryKindOfJobWithItsRank) {
    for (int ranks : {2, 8}) {
        for (double factor : {1.15, 1.5, 3.0}) {
            test::DdpJob ddp;
            ddp.ranks = ranks;
            ddp.slow = {{1, factor}};
            EXPECT_EQ(test::foundIn(test::playDdp(ddp).analyze()), "RS301[1]")
                << "ddp " << ranks << " ranks, factor " << factor;
            test::FsdpJob fsdp;
            fsdp.ranks = ranks;
            fsdp.slow = {{ranks - 1, factor}};
            EXPECT_EQ(test::foundIn(test::playFsdp(fsdp).analyze()), fmt::format("RS301[{}]", ranks - 1))
                << "fsdp " << ranks << " ranks, factor " << factor;
        }
    }
    test::PipelineJob pipeline;
    pipeline.ranks = 4;
    pipeline.slow = {{2, 1.4}};
    EXPECT_EQ(test::foundIn(test::playPipeline(pipeline).analyze()), "RS301[2]");
}

TEST(Straggler, SavingIsTheStepTimeThatABalancedRunHasLess) {
    test::DdpJob slow;
    slow.noise = 0;
    slow.slow = {{5, 1.4}};
    test::DdpJob balanced = slow;
    balanced.slow = {};
    const report::Report before = test::playDdp(slow).analyze(), after = test::playDdp(balanced).analyze();
    ASSERT_EQ(test::foundIn(before), "RS301[5]");
    EXPECT_NEAR(before.findings[0].worthNs(), before.run.stepNs - after.run.stepNs, 0.03 * before.run.stepNs);
    EXPECT_EQ(before.findings[0].affectedRanks, (std::vector<int>{0, 1, 2, 3, 4, 6, 7}));
}

TEST(Straggler, TwoOfThemAreTwoFindings) {
    test::FsdpJob job;
    job.slow = {{2, 1.5}, {6, 1.5}};
    const report::Report report = test::playFsdp(job).analyze();
    std::vector<int> ranks;
    for (const job::Finding& f : report.findings) ranks.insert(ranks.end(), f.ranks.begin(), f.ranks.end());
    std::sort(ranks.begin(), ranks.end());
    EXPECT_EQ(test::idsIn(report), "RS301 RS301");
    EXPECT_EQ(ranks, (std::vector<int>{2, 6}));
}

TEST(Straggler, JustUnderTheFloorIsANote) {
    test::DdpJob job;
    job.noise = 0.002;
    job.slow = {{3, 1.031}};
    const report::Report report = test::playDdp(job).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    for (const job::Finding& note : report.notes) EXPECT_EQ(note.id, "RS301");
}

TEST(Straggler, HiddenByCommunicationCostsLittle) {
    test::FsdpJob job;
    job.slow = {{3, 1.3}};
    job.layerBytes = 1000e6;  // communication takes several times the compute
    const report::Report report = test::playFsdp(job).analyze();
    EXPECT_EQ(test::idsIn(report), "RS203");
}

TEST(Straggler, ASlowClockIsNoStraggler) {
    // Rank 1's arrivals look late by less than the clock's error, its kernels are as fast as the others'.
    test::DdpJob job;
    job.ranksPerHost = 4;
    test::TraceFixture trace = test::playDdp(job);
    trace.clockBound(50 * test::kUs);
    EXPECT_EQ(test::foundIn(trace.analyze()), "");
}

TEST(Straggler, OneStepIsTooFewToSaySo) {
    test::DdpJob job;
    job.steps = 2;  // one of them is warm-up
    job.slow = {{4, 1.5}};
    EXPECT_EQ(test::foundIn(test::playDdp(job).analyze()), "RS301?[4]");
}

bool tellsOfLoss(const job::Finding& finding) {
    return std::any_of(finding.evidence.facts.begin(), finding.evidence.facts.end(),
                       [](const std::string& fact) { return fact.find("records are missing") != std::string::npos; });
}

TEST(Straggler, LossOnItsRankIsToldBesideIt) {
    test::DdpJob job;
    job.slow = {{4, 1.5}};
    test::TraceFixture trace = test::playDdp(job);
    EXPECT_FALSE(tellsOfLoss(trace.analyze().findings.at(0)));
    trace.loss("ring_full", store::Severity::warning, 4);
    EXPECT_TRUE(tellsOfLoss(trace.analyze().findings.at(0)));
}

TEST(Straggler, LossOnARankThatWaitsIsToldBesideItToo) {
    test::DdpJob job;
    job.slow = {{4, 1.5}};
    test::TraceFixture trace = test::playDdp(job);
    trace.loss("bad_block", store::Severity::warning, 0);
    EXPECT_TRUE(tellsOfLoss(trace.analyze().findings.at(0)));
}

TEST(Overlap, GradientsAfterBackwardAreFound) {
    test::DdpJob job;
    job.buckets = test::Buckets::afterBackward;
    const report::Report report = test::playDdp(job).analyze();
    EXPECT_EQ(test::idsIn(report), "RS201");
    test::DdpJob healthy;
    const double measured = report.run.stepNs - test::playDdp(healthy).analyze().run.stepNs;
    EXPECT_NEAR(report.findings.at(0).worthNs(), measured, 0.05 * report.run.stepNs);
}

TEST(Overlap, ASingleBucketIsFoundAndNamed) {
    test::DdpJob job;
    job.buckets = test::Buckets::single;
    const report::Report report = test::playDdp(job).analyze();
    ASSERT_EQ(test::idsIn(report), "RS201");
    EXPECT_NE(report.findings[0].cause.find("one bucket"), std::string::npos);
}

TEST(Overlap, BackwardThatWaitsForEachOfItsReductionsIsFound) {
    test::DdpJob job;
    job.buckets = test::Buckets::awaited;
    const report::Report report = test::playDdp(job).analyze();
    ASSERT_EQ(test::idsIn(report), "RS201");
    EXPECT_NE(report.findings[0].cause.find("backward stands still behind"), std::string::npos)
        << report.findings[0].cause;
}

TEST(Overlap, WaitingForReductionsIsANoteJustUnderTheFloor) {
    test::DdpJob job;
    job.buckets = test::Buckets::awaited;
    job.layerBytes = 5e6;
    job.messagesPerLayer = 1;
    job.wire.alphaNs = 1000;
    const report::Report report = test::playDdp(job).analyze();
    EXPECT_EQ(test::foundIn(report), "");
}

TEST(Overlap, ShardedWithoutPrefetchOrOverlapIsFound) {
    for (bool overlap : {true, false}) {
        test::FsdpJob job;
        job.prefetch = false;
        job.overlap = overlap;
        const report::Report report = test::playFsdp(job).analyze();
        ASSERT_EQ(test::idsIn(report), "RS201") << "overlap " << overlap;
        // On one stream the gathers queue behind the scatters either way: the trace cannot tell the two apart, and
        // prefetch mends both.
        EXPECT_NE(report.findings[0].cause.find("prefetch is off"), std::string::npos) << report.findings[0].cause;
        test::FsdpJob healthy;
        const double measured = report.run.stepNs - test::playFsdp(healthy).analyze().run.stepNs;
        EXPECT_NEAR(report.findings.at(0).worthNs(), measured, 0.05 * report.run.stepNs);
    }
}

TEST(Overlap, PrefetchThatLeavesOutSomeLayersIsNotOff) {
    test::FsdpJob job;
    job.dueEvery = 3;
    const report::Report report = test::playFsdp(job).analyze();
    ASSERT_EQ(test::idsIn(report), "RS201");
    const std::string& cause = report.findings[0].cause;
    EXPECT_EQ(cause.find("prefetch is off"), std::string::npos) << cause;
    EXPECT_NE(cause.find("all-gathers of a step are not under the compute before them"), std::string::npos) << cause;
}

TEST(Overlap, JustUnderTheFloorIsANote) {
    test::DdpJob job;
    job.buckets = test::Buckets::afterBackward;
    job.layerBytes = 10e6;
    job.messagesPerLayer = 1;
    job.wire.alphaNs = 1000;
    const report::Report report = test::playDdp(job).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    ASSERT_FALSE(report.notes.empty());
    EXPECT_EQ(report.notes[0].id, "RS201");
}

TEST(SmallMessages, AStormIsFoundAndTheBucketIsLargerThanTheCrossover) {
    test::DdpJob job;
    job.messagesPerLayer = 200;
    job.layerBytes = 20e6;
    const report::Report report = test::playDdp(job).analyze();
    ASSERT_EQ(test::idsIn(report), "RS202");
    EXPECT_GT(savingShare(report), 0.5);
}

TEST(SmallMessages, AStormThatTheFirstAnalysedStepLacksIsFound) {
    test::DdpJob job;
    job.messagesPerLayer = 200;
    job.layerBytes = 20e6;
    job.singleSteps = 1;
    EXPECT_EQ(test::idsIn(test::playDdp(job).analyze()), "RS202");
}

TEST(SmallMessages, FewOrHiddenOnesAreNoStorm) {
    test::DdpJob job;
    job.messagesPerLayer = 20;  // 240 x 60 us, hidden behind 48 ms of backward
    job.layerBytes = 2e6;
    EXPECT_EQ(test::foundIn(test::playDdp(job).analyze()), "");
}

TEST(Saturation, VolumeBeyondComputeAtTheCeilingIsFound) {
    test::DdpJob ddp;
    ddp.layerBytes = 600e6;
    EXPECT_EQ(test::idsIn(test::playDdp(ddp).analyze()), "RS203");
    test::FsdpJob fsdp;
    fsdp.layerBytes = 500e6;
    EXPECT_EQ(test::idsIn(test::playFsdp(fsdp).analyze()), "RS203");
}

/// Share of the step that RS203 names, as finding or note.
double saturation(double layerBytes) {
    test::FsdpJob job;
    job.layers = 4;
    job.layerBytes = layerBytes;
    const report::Report report = test::playFsdp(job).analyze();
    for (const std::vector<job::Finding>* all : {&report.findings, &report.notes})
        for (const job::Finding& finding : *all)
            if (finding.id == "RS203") return finding.severity;
    return 0;
}

TEST(Saturation, ComesByDegrees) {
    double last = saturation(100e6), most = 0;
    EXPECT_EQ(last, 0);
    for (double bytes = 110e6; bytes <= 500e6; bytes += 10e6) {
        const double now = saturation(bytes);
        EXPECT_LT(now - last, 0.04) << bytes;
        last = now;
        most = std::max(most, now);
    }
    EXPECT_GT(most, 0.2);
}

TEST(Saturation, JustUnderTheFloorIsANote) {
    double bytes = 100e6;
    while (bytes < 500e6 && saturation(bytes) == 0) bytes += 4e6;
    test::FsdpJob job;
    job.layers = 4;
    job.layerBytes = bytes;
    const report::Report report = test::playFsdp(job).analyze();
    EXPECT_EQ(test::foundIn(report), "");
    EXPECT_EQ(std::count_if(report.notes.begin(), report.notes.end(),
                            [](const job::Finding& note) { return note.id == "RS203"; }),
              1);
    EXPECT_LT(saturation(bytes), PriceThresholds::kFloorShare);
}

TEST(Saturation, WithoutAPeakItIsInconclusive) {
    test::FsdpJob job;
    job.layerBytes = 500e6;
    job.linksKnown = false;
    EXPECT_EQ(test::idsIn(test::playFsdp(job).analyze()), "RS203?");
}

/// Whatever is told of a link that carries too much: it is at its ceiling, nobody can tell, it is slow, or the job
/// refutes what was told; in this order, and no rate leads to silence.
TEST(Saturation, LeavesNoGapBeforeAnUnderUsedLink) {
    test::FsdpJob job;
    job.layerBytes = 500e6;
    job.linksKnown = false;
    std::string seen;
    for (double told = 40; told <= 300; told += 10) {
        test::TraceFixture trace = test::playFsdp(job);
        trace.links("intra:gbps=400;inter:gbps=" + std::to_string(told / 4));  // four cards a node
        const std::string ids = test::idsIn(trace.analyze());
        ASSERT_TRUE(ids == "RS203" || ids == "RS203?" || ids == "RS204") << told << ": " << ids;
        if (!seen.ends_with(" " + ids)) seen += " " + ids;
    }
    EXPECT_EQ(seen, " RS203? RS203 RS203? RS204");
}

TEST(Saturation, ALinkFarUnderItsCeilingIsAnotherDiagnosis) {
    test::FsdpJob job;
    job.layerBytes = 500e6;
    job.linksKnown = false;
    test::TraceFixture trace = test::playFsdp(job);
    trace.links("intra:gbps=300;inter:gbps=300");
    EXPECT_EQ(test::foundIn(trace.analyze()), "RS204[0 1 2 3 4 5 6 7]");
}

}  // namespace
}  // namespace rankscope::diagnose

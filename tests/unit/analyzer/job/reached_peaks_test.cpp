// SPDX-License-Identifier: Apache-2.0
// Links that nobody told the peak of: what the job's own traffic says about them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analyzer/job/analysis.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/report/analyze.h"
#include "tests/unit/analyzer/player.h"

namespace rankscope::job {
namespace {

using store::Algorithm;
using store::Op;
using store::Protocol;

struct Storm {
    Protocol protocol = Protocol::ll;
    double bytes = 1e6;
    double startupNs = 100e3;
    std::string links;
};

/// Eight ranks of one node, 64 messages a step behind a short backward pass, at 100 GB/s beyond their start-up.
report::Report play(const Storm& job) {
    test::Player player(8, 8, job.links);
    player.trace.choice(Algorithm::ring, job.protocol);
    const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
    const double share = job.protocol == Protocol::ll ? 0.5 : 1;
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 64; ++layer) player.compute(25e3, "forward");
        for (int layer = 0; layer < 64; ++layer) {
            player.compute(50e3, "backward");
            player.beside(world, Op::allReduce, job.bytes, job.startupNs + job.bytes * 1.75 / (100 * share));
        }
        player.endStep();
    }
    return player.trace.analyze();
}

Analysis analysisOf(const test::Player& player) {
    const test::TemporaryFolder folder;
    player.trace.write(folder.path() / "trace.db");
    return readAnalysis(folder.path() / "trace.db");
}

TEST(ReachedPeaks, AStormOfMessagesThatNcclSendsByLLIsFoundWithoutPeaks) {
    const report::Report report = play({});
    EXPECT_EQ(test::Player::found(report), "RS202[0 1 2 3 4 5 6 7]");
    ASSERT_FALSE(report.findings.empty());
    const report::Report told = play({Protocol::ll, 1e6, 100e3, "intra:gbps=100,alpha_us=18"});
    ASSERT_EQ(test::Player::found(told), "RS202[0 1 2 3 4 5 6 7]");
    EXPECT_LE(report.findings[0].worthNs(), told.findings[0].worthNs());
}

/// One size by Simple: a slow link and a long start-up look alike.
TEST(ReachedPeaks, OneSizeOfSimpleTellsNoStartUp) {
    EXPECT_EQ(test::Player::found(play({Protocol::simple, 1e6, 100e3, ""})).find("RS202"), std::string::npos);
}

/// What is left of a time after the least start-up there is, with the protocol's share taken out; never more than the
/// link carries.
TEST(ReachedPeaks, AreLowerBounds) {
    for (const Protocol protocol : {Protocol::ll, Protocol::simple}) {
        for (const double bytes : {1e6, 30e6, 300e6}) {
            test::Player player(8, 8, "");
            player.trace.choice(Algorithm::ring, protocol);
            const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
            for (int step = 0; step < 6; ++step) {
                player.compute(1e6);
                player.blocking(world, Op::allReduce, bytes,
                                100e3 + bytes * 1.75 / (100 * (protocol == Protocol::ll ? 0.5 : 1)));
                player.endStep();
            }
            const costs::LinkPeaks peaks = analysisOf(player).peaks;
            ASSERT_TRUE(peaks.intra.has_value());
            EXPECT_FALSE(peaks.inter.has_value());
            EXPECT_EQ(peaks.intra->kind, costs::PeakKind::atLeast);
            EXPECT_EQ(peaks.intra->alphaNs, 0);
            EXPECT_LE(peaks.intra->bytesPerNs, 100);
            if (bytes > 200e6) {
                EXPECT_GE(peaks.intra->bytesPerNs, 95);
            }
        }
    }
}

TEST(ReachedPeaks, LeaveWhatWasToldAlone) {
    test::Player player(8, 4, "inter:gbps=25,alpha_us=10");
    const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
    for (int step = 0; step < 6; ++step) {
        player.compute(1e6);
        player.blocking(world, Op::allReduce, 100e6, 100e3 + 100e6 * 1.75 / 60);
        player.endStep();
    }
    const Analysis analysis = analysisOf(player);
    EXPECT_EQ(analysis.peaks.inter->kind, costs::PeakKind::told);
    EXPECT_EQ(analysis.peaks.inter->bytesPerNs, 25);
    EXPECT_EQ(analysis.peaks.intra->kind, costs::PeakKind::atLeast);
    const facts::Communicator& group = analysis.facts.communicators.begin()->second;
    EXPECT_FALSE(analysis.peaks.atLeast(group));
    EXPECT_EQ(*analysis.peaks.busCeiling(group), 100);  // four cards; what the ports carried is no limit
}

/// A wrong word of the user's does not hide what the machine itself says, unless the job exceeds that, too.
TEST(ReachedPeaks, WhereAToldPeakIsRefutedTheNextSourceCounts) {
    for (const double machine : {200.0, 50.0}) {
        test::Player player(8, 8, "intra:gbps=40");
        player.trace.choice(Algorithm::ring, Protocol::simple);
        const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
        for (int step = 0; step < 6; ++step) {
            player.compute(1e6);
            player.blocking(world, Op::allReduce, 100e6, 100e3 + 100e6 * 1.75 / 60);
            player.endStep();
        }
        Analysis analysis = analysisOf(player);
        analysis.peaks = costs::LinkPeaks();
        analysis.peaks.intra = costs::LinkClass{40, 0, costs::PeakKind::told, "--links"};
        analysis.peaks.intraOthers = {costs::LinkClass{machine, 0, costs::PeakKind::machine, "NVML"}};
        addReachedPeaks(analysis, undisturbedMessages(analysis));
        const costs::LinkPeaks& peaks = analysis.peaks;
        ASSERT_TRUE(peaks.intra);
        ASSERT_FALSE(peaks.warnings.empty());
        EXPECT_NE(peaks.warnings[0].find("refutes the peak of 40 GB/s of --links: " + fmt::format("{:.4g}", machine) +
                                         " GB/s of NVML is used instead"),
                  std::string::npos)
            << peaks.warnings[0];
        EXPECT_EQ(peaks.intra->kind, machine > 100 ? costs::PeakKind::machine : costs::PeakKind::atLeast);
        EXPECT_EQ(peaks.warnings.size(), machine > 100 ? 1u : 2u);
    }
}

TEST(ReachedPeaks, APeakThatTheJobExceedsIsNotUsedAndSaid) {
    for (const double told : {1.0, 40.0, 55.0}) {
        test::Player player(8, 8, "intra:gbps=" + std::to_string(told));
        player.trace.choice(Algorithm::ring, Protocol::simple);
        const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
        for (int step = 0; step < 6; ++step) {
            player.compute(1e6);
            player.blocking(world, Op::allReduce, 100e6, 100e3 + 100e6 * 1.75 / 60);
            player.endStep();
        }
        const costs::LinkPeaks peaks = analysisOf(player).peaks;
        if (told > 50) {  // a tenth is within what clocks and medians are known to
            EXPECT_EQ(peaks.intra->kind, costs::PeakKind::told);
            EXPECT_TRUE(peaks.warnings.empty());
            continue;
        }
        EXPECT_EQ(peaks.intra->kind, costs::PeakKind::atLeast);
        EXPECT_NEAR(peaks.intra->bytesPerNs, 59, 2);
        EXPECT_NE(peaks.intra->source.find("which refutes"), std::string::npos) << peaks.intra->source;
        ASSERT_EQ(peaks.warnings.size(), 1u);
        for (const char* part : {"inside a node", told > 1 ? "40 GB/s" : "1 GB/s", "refutes the peak", "--links",
                                 "is not used", "this job reached"})
            EXPECT_NE(peaks.warnings[0].find(part), std::string::npos) << peaks.warnings[0];
    }
}

/// Two nodes whose algorithm nobody recorded: a tree may have crossed the network half as often.
TEST(ReachedPeaks, AnUnknownAlgorithmRefutesLess) {
    for (const Algorithm algorithm : {Algorithm::unknown, Algorithm::ring}) {
        test::Player player(8, 4, "intra:gbps=400;inter:gbps=25");
        player.trace.choice(algorithm, algorithm == Algorithm::ring ? Protocol::simple : Protocol::unknown);
        const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
        for (int step = 0; step < 6; ++step) {
            player.compute(1e6);
            player.blocking(world, Op::allReduce, 100e6, 100e3 + 100e6 * 1.75 / 180);  // of 100 GB/s of four cards
            player.endStep();
        }
        EXPECT_EQ(analysisOf(player).peaks.warnings.empty(), algorithm == Algorithm::unknown);
    }
}

}  // namespace
}  // namespace rankscope::job

// SPDX-License-Identifier: Apache-2.0
// RS204 and RS208: links slower than they should be, all of a class or one among its siblings.
#include <gtest/gtest.h>

#include "tests/unit/analyzer/player.h"

namespace rankscope::diagnose {
namespace {

using store::Op;

constexpr const char* kLinks = "intra:gbps=100,alpha_us=5;inter:gbps=25,alpha_us=10";

/// Two nodes of four: tensor-parallel groups inside a node, data-parallel pairs between them. `slow` stretches every
/// group that `isSlow` names.
struct Grid {
    double tensorFactor[2] = {1, 1};      // by node
    double dataFactor[4] = {1, 1, 1, 1};  // by local rank: its pair over the nodes
    std::string environment;
    std::string links = kLinks;
};

report::Report playGrid(const Grid& job) {
    test::Player player(8, 4, job.links);
    if (!job.environment.empty()) player.trace.environment(job.environment, "1");
    const std::vector<int> tensor{player.communicator({0, 1, 2, 3}), player.communicator({4, 5, 6, 7})};
    const std::vector<int> data{player.communicator({0, 4}), player.communicator({1, 5}), player.communicator({2, 6}),
                                player.communicator({3, 7})};
    const auto activations = [&] {
        const double ns = 42e3 + 50e6 * 1.5 / 100;  // six hops, and NCCL's base
        player.blocking(tensor, Op::allReduce, 50e6, {ns * job.tensorFactor[0], ns * job.tensorFactor[1]});
    };
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 16; ++layer) {
            player.compute((layer < 6 ? 0.6e6 : 1.2e6) * (layer % 2 == 0 ? 0.8 : 1.2),
                           layer < 6 ? "forward" : "backward");
            activations();
        }
        for (int bucket = 0; bucket < 4; ++bucket) {
            const double ns = 20e3 + 50e6 / 25;
            player.blocking(
                data, Op::allReduce, 50e6,
                {ns * job.dataFactor[0], ns * job.dataFactor[1], ns * job.dataFactor[2], ns * job.dataFactor[3]});
        }
        player.endStep();
    }
    return player.trace.analyze();
}

std::string linksFound(const report::Report& report) {
    std::string text;
    for (const job::Finding& f : report.findings)
        if (f.id == "RS204" || f.id == "RS208")
            text += (text.empty() ? "" : " ") + f.id + "[" + std::to_string(f.ranks.front()) +
                    (f.ranks.size() > 1 ? "..]" : "]");
    return text;
}

TEST(SlowLink, OneRankIsNamedFromTheGroupsItIsIn) {
    Grid job;
    job.tensorFactor[0] = job.dataFactor[2] = 3;  // rank 2 is in both
    const report::Report report = playGrid(job);
    ASSERT_EQ(linksFound(report), "RS208[2]");
    const double measured = report.run.stepNs - playGrid({}).run.stepNs;
    for (const job::Finding& f : report.findings) {
        if (f.id != "RS208") continue;
        EXPECT_NEAR(f.worthNs(), measured, 0.03 * report.run.stepNs);
    }
}

TEST(SlowLink, WithoutPeaksTheFastestGroupsAreTheMeasure) {
    Grid job;
    job.links = "";
    EXPECT_EQ(linksFound(playGrid(job)), "");
    job.tensorFactor[0] = job.dataFactor[2] = 3;
    const report::Report report = playGrid(job);
    ASSERT_EQ(linksFound(report), "RS208[2]");
    const double measured = report.run.stepNs - playGrid({}).run.stepNs;
    for (const job::Finding& f : report.findings) {
        if (f.id != "RS208") continue;
        // By the best that was reached with the least start-up taken off, a little less than the links can do.
        EXPECT_LT(f.worthNs(), measured + 0.01 * report.run.stepNs);
        EXPECT_GT(f.worthNs(), measured - 0.04 * report.run.stepNs);
        EXPECT_NE(f.cause.find("at least"), std::string::npos) << f.cause;
    }
}

TEST(SlowLink, WithoutPeaksJustUnderTheThresholdIsSilent) {
    Grid job;
    job.links = "";
    job.tensorFactor[0] = job.dataFactor[2] = 1.4;
    EXPECT_EQ(linksFound(playGrid(job)), "");
}

TEST(SlowLink, WithoutPeaksAWholeClassIsUnderUsedWhereASettingSaysSo) {
    Grid job;
    job.links = "";
    for (double& factor : job.dataFactor) factor = 3;
    EXPECT_EQ(linksFound(playGrid(job)), "");  // as fast as each other: nothing tells
    job.environment = "NCCL_IB_DISABLE";
    const report::Report report = playGrid(job);
    ASSERT_EQ(linksFound(report), "RS204[0..]");
    for (const job::Finding& f : report.findings) {
        if (f.id != "RS204") continue;
        EXPECT_FALSE(f.savingNs);
        EXPECT_EQ(f.fix.at(0), "unset NCCL_IB_DISABLE");
        EXPECT_NE(f.cause.find("8.3 GB/s"), std::string::npos) << f.cause;
    }
    job.environment = "NCCL_P2P_DISABLE";  // of the other class: its messages are exposed, too
    EXPECT_EQ(linksFound(playGrid(job)), "RS204[0..]");
    job.environment = "NCCL_IB_HCA";  // may name the best there is
    EXPECT_EQ(linksFound(playGrid(job)), "");
}

TEST(SlowLink, AllLinksOfAClassAreUnderUsedInstead) {
    Grid job;
    for (double& factor : job.dataFactor) factor = 3;
    job.environment = "NCCL_IB_DISABLE";
    const report::Report report = playGrid(job);
    ASSERT_EQ(linksFound(report), "RS204[0..]");
    for (const job::Finding& f : report.findings)
        if (f.id == "RS204") {
            EXPECT_NE(f.cause.find("NCCL_IB_DISABLE=1"), std::string::npos) << f.cause;
            EXPECT_EQ(f.fix.at(0), "unset NCCL_IB_DISABLE");
            EXPECT_NEAR(f.worthNs(), report.run.stepNs - playGrid({}).run.stepNs, 0.03 * report.run.stepNs);
        }
}

TEST(SlowLink, SilentAtThePeakAndJustAboveTheThreshold) {
    EXPECT_EQ(linksFound(playGrid({})), "");
    Grid job;
    for (double& factor : job.tensorFactor) factor = 1.4;
    for (double& factor : job.dataFactor) factor = 1.4;
    EXPECT_EQ(linksFound(playGrid(job)), "");
}

/// One group of all ranks: only who leaves last can tell.
report::Report playWorld(const std::vector<int64_t>& earlyUs, int ranksPerHost = 8, int64_t clockBoundNs = 0,
                         const std::string& links = kLinks) {
    test::Player player(8, ranksPerHost, links);
    if (clockBoundNs > 0) player.trace.clockBound(clockBoundNs);
    std::vector<int64_t> early;
    for (int64_t us : earlyUs) early.push_back(us * test::kUs);
    player.trace.leavesEarly(early);
    const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 8; ++layer) player.compute(2e6, "forward");
        for (int layer = 0; layer < 8; ++layer) {
            player.compute(4e6, "backward");
            player.beside(world, Op::allReduce, 200e6, (ranksPerHost < 8 ? 6 : 3) * 3.5e6);
        }
        player.endStep();
    }
    return player.trace.analyze();
}

TEST(SlowLink, InAWorldGroupTheLastToLeaveIsNamed) {
    EXPECT_EQ(linksFound(playWorld({1200, 900, 600, 0, 2100, 1800, 1700, 1500})), "RS208[3]");
}

TEST(SlowLink, WithoutPeaksALeadOfMostOfAChunkTellsThatTheOtherEdgesAreFaster) {
    const std::vector<int64_t> early{1200, 900,  600,  0,
                                     2100, 1800, 1700, 1500};  // a chunk takes 750 us: the others need a fifth of it
    const report::Report report = playWorld(early, 8, 0, "");
    ASSERT_EQ(linksFound(report), "RS208[3]");
    for (const job::Finding& f : report.findings) {
        if (f.id == "RS208") {
            EXPECT_NE(f.cause.find("at least 4.6 times"), std::string::npos) << f.cause;
        }
    }
    EXPECT_EQ(linksFound(playWorld({360, 270, 180, 0, 630, 540, 510, 450}, 8, 0, "")),
              "");  // a quarter of a chunk: 1.3 times slower
    EXPECT_EQ(linksFound(playWorld({0, 0, 0, 0, 0, 0, 0, 0}, 8, 0, "")), "");
}

TEST(SlowLink, OfThreeThatLeaveLastTheMiddleIsNamed) {
    EXPECT_EQ(linksFound(playWorld({800, 400, 0, 0, 0, 200, 400, 600})), "RS208[3]");
    EXPECT_EQ(linksFound(playWorld({0, 0, 200, 400, 600, 800, 400, 0})), "RS208[0]");
}

TEST(SlowLink, TwoThatLeaveLastAreThePair) {
    const report::Report report = playWorld({800, 400, 0, 0, 200, 400, 600, 800});
    ASSERT_EQ(linksFound(report), "RS208[2..]");
    for (const job::Finding& f : report.findings) {
        if (f.id == "RS208") {
            EXPECT_EQ(f.ranks, (std::vector<int>{2, 3}));
        }
    }
}

TEST(SlowLink, NobodyIsNamedWhereTheLastAreNoRunOfTheRing) {
    EXPECT_EQ(linksFound(playWorld({0, 400, 0, 200, 0, 200, 400, 600})), "RS204[0..]");
    EXPECT_EQ(linksFound(playWorld({0, 0, 0, 0, 0, 200, 400, 600})), "RS204[0..]");
}

TEST(SlowLink, NobodyIsNamedByLessThanCanBeSeen) {
    EXPECT_EQ(linksFound(playWorld({16, 8, 0, 0, 0, 4, 8, 12})), "RS204[0..]");  // 4 us
    EXPECT_EQ(linksFound(playWorld({24, 12, 0, 0, 0, 6, 12, 18})), "RS208[3]");
}

TEST(SlowLink, BetweenHostsTheClockMustShowIt) {
    const std::vector<int64_t> early{0, 0, 0, 0, 0, 0, 300, 300};  // nodes 0, 1 and 2 of four: node 1 is in the middle
    const report::Report report = playWorld(early, 2, 100'000);
    ASSERT_EQ(linksFound(report), "RS208[2..]");
    for (const job::Finding& f : report.findings) {
        if (f.id == "RS208") {
            EXPECT_EQ(f.ranks, (std::vector<int>{2, 3}));
        }
    }
    EXPECT_EQ(linksFound(playWorld(early, 2, 200'000)), "RS204[0..]");
}

TEST(SlowLink, AWorldGroupThatLeavesTogetherIsAnUnderUsedLink) {
    EXPECT_EQ(linksFound(playWorld({0, 0, 0, 0, 0, 0, 0, 0})), "RS204[0..]");
}

/// Three stages in a row; messages of one pair may be slow.
report::Report playPairs(double factor, const std::string& links = kLinks) {
    test::TraceFixture trace(3, 1);
    if (!links.empty()) trace.links(links);
    const int chain = trace.communicator({0, 1, 2});
    int64_t now = 0;
    for (int step = 0; step < 6; ++step) {
        const int64_t start = now;
        for (int micro = 0; micro < 8; ++micro) {
            for (int stage = 0; stage < 3; ++stage) {
                trace.kernel(stage, now, 2 * test::kMs, "layer", 64);
                now += 2 * test::kMs;
                if (stage == 2) break;
                const auto transfer = static_cast<int64_t>((10e3 + 50e6 / 25) * (stage == 1 ? factor : 1));
                now = trace.message(chain, stage, stage + 1, 50'000'000, now, now, transfer);
            }
        }
        for (int rank = 0; rank < 3; ++rank) trace.step(rank, step, start, now - start, step == 0);
    }
    return trace.analyze();
}

TEST(SlowLink, OnePairIsNamedFromItsMessages) {
    for (const char* links : {kLinks, ""}) {
        std::string found;
        for (const job::Finding& f : playPairs(4, links).findings)
            if (f.id == "RS208") found += std::to_string(f.ranks.front()) + "-" + std::to_string(f.ranks.back());
        EXPECT_EQ(found, "1-2") << links;
        EXPECT_EQ(linksFound(playPairs(1, links)), "") << links;
    }
}

}  // namespace
}  // namespace rankscope::diagnose

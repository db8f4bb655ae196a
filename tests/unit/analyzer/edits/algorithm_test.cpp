// SPDX-License-Identifier: Apache-2.0
// RS205: the algorithm or protocol that NCCL used, as its profiler plugin tells, against the others.
#include <gtest/gtest.h>

#include "analyzer/costs/nccl_formulas.h"
#include "tests/unit/analyzer/player.h"

namespace rankscope::edits {
namespace {

using store::Algorithm;
using store::Op;
using store::Protocol;

constexpr const char* kLinks = "intra:gbps=100,alpha_us=5;inter:gbps=100,alpha_us=5";

/// Data parallelism over 8 ranks of one node: a forward pass, then 8 layers of backward with a reduction each; the rest
/// of communication waits at the end.
struct Reductions {
    Algorithm algorithm = Algorithm::ring;
    Protocol protocol = Protocol::simple;
    double share = 1;      // of the link that the choice reaches
    double bytes = 200e6;  // 3.5 ms at 100 GB/s
    double backwardNs = 4e6;
    double startupNs = 70e3;  // 14 hops
    std::string environment;
    std::string links = kLinks;
};

report::Report play(const Reductions& job) {
    test::Player player(8, 8, job.links);
    player.trace.choice(job.algorithm, job.protocol);
    if (!job.environment.empty())
        player.trace.environment(job.environment.substr(0, job.environment.find('=')),
                                 job.environment.substr(job.environment.find('=') + 1));
    const int world = player.communicator({0, 1, 2, 3, 4, 5, 6, 7});
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 8; ++layer) player.compute(job.backwardNs / 2, "forward");
        for (int layer = 0; layer < 8; ++layer) {
            player.compute(job.backwardNs, "backward");
            player.beside(world, Op::allReduce, job.bytes, job.startupNs + job.bytes * 1.75 / (100 * job.share));
        }
        player.endStep();
    }
    return player.trace.analyze();
}

TEST(Algorithm, AForcedSlowProtocolIsFoundWithTheVariableThatForcesIt) {
    Reductions slow;
    slow.protocol = Protocol::ll;
    slow.share = 0.4;
    slow.startupNs = 28e3;
    slow.environment = "NCCL_PROTO=LL";
    const report::Report report = play(slow);
    ASSERT_EQ(test::Player::found(report), "RS205[0 1 2 3 4 5 6 7]");
    EXPECT_NE(report.findings[0].fix.at(0).find("unset NCCL_PROTO"), std::string::npos) << report.findings[0].fix[0];
    EXPECT_NE(report.findings[0].fix.at(1).find("NCCL_PROTO=\"allreduce:Simple\""), std::string::npos)
        << report.findings[0].fix[1];
    const double measured = report.run.stepNs - play({}).run.stepNs;
    EXPECT_NEAR(report.findings[0].worthNs(), measured, 0.03 * report.run.stepNs);
}

TEST(Algorithm, WithoutLinkPeaksTheProtocolsOwnShareTells) {
    Reductions slow;
    slow.protocol = Protocol::ll;
    slow.share = 0.4;
    slow.environment = "NCCL_PROTO=LL";
    slow.links = "";
    // Half of an LL line are flags: the link carries twice what arrived, at least.
    const report::Report report = play(slow);
    ASSERT_EQ(test::Player::found(report), "RS205[0 1 2 3 4 5 6 7]");
    const double measured = report.run.stepNs - play({}).run.stepNs;
    EXPECT_LE(report.findings[0].worthNs(), measured);
    EXPECT_GE(report.findings[0].worthNs(), measured / 2);
    Reductions simple;
    simple.links = "";
    simple.share = 0.4;
    EXPECT_EQ(test::Player::found(play(simple)).find("RS205"), std::string::npos);
}

TEST(Algorithm, AForcedRingLosesToATreeForSmallMessagesOfManyRanks) {
    for (bool tree : {false, true}) {
        test::Player player(32, 32, kLinks);
        player.trace.choice(tree ? Algorithm::tree : Algorithm::ring, Protocol::simple)
            .environment("NCCL_ALGO", tree ? "tree" : "ring");
        std::vector<int> all;
        for (int rank = 0; rank < 32; ++rank) all.push_back(rank);
        const int world = player.communicator(all);
        for (int step = 0; step < 6; ++step) {
            for (int layer = 0; layer < 8; ++layer) {
                player.compute(1e6);
                player.blocking(world, Op::allReduce, 100e3, (tree ? 10 : 62) * 5e3 + 100e3 * 1.9 / 100);
            }
            player.endStep();
        }
        const std::string found = test::Player::found(player.trace.analyze());
        EXPECT_EQ(found.find("RS205") != std::string::npos, !tree) << found;
    }
}

TEST(Algorithm, SilentWhenTheChoiceIsGoodHiddenOrUnknown) {
    // The link is busy for most of backward: of its last message a faster one would leave less.
    EXPECT_EQ(test::Player::found(play({})), "RS203[0 1 2 3 4 5 6 7]");
    Reductions hidden;
    hidden.protocol = Protocol::ll;
    hidden.share = 0.4;
    hidden.bytes = 30e6;  // 1.3 ms behind 4 ms of backward
    hidden.environment = "NCCL_PROTO=LL";
    EXPECT_EQ(test::Player::found(play(hidden)), "");
    Reductions unknown;
    unknown.algorithm = Algorithm::unknown;
    unknown.protocol = Protocol::unknown;
    unknown.share = 0.4;
    EXPECT_EQ(test::Player::found(play(unknown)).find("RS205"), std::string::npos);
}

TEST(Algorithm, JustUnderTheThresholdIsSilent) {
    Reductions tree;  // 0.92 of the ring's bandwidth: 8 % slower
    tree.algorithm = Algorithm::tree;
    tree.share = 0.93;
    tree.startupNs = 30e3;
    tree.environment = "NCCL_ALGO=tree";
    tree.backwardNs = 3.4e6;
    EXPECT_EQ(test::Player::found(play(tree)).find("RS205"), std::string::npos);
}

TEST(Formulas, OnASlowLinkAProtocolReachesWhatItsFormatLeaves) {
    const costs::LinkModel link{0, 100};
    const costs::AlgorithmChoice ll{Algorithm::ring, Protocol::ll}, simple{Algorithm::ring, Protocol::simple};
    EXPECT_DOUBLE_EQ(costs::explainedNs(link, Op::allReduce, 8, 800, ll, 30), 30);   // within 28 to 56
    EXPECT_DOUBLE_EQ(costs::explainedNs(link, Op::allReduce, 8, 800, ll, 70), 56);   // the device or the link
    EXPECT_DOUBLE_EQ(costs::explainedNs(link, Op::allReduce, 8, 800, ll, 280), 28);  // a tenth of the link
    EXPECT_DOUBLE_EQ(costs::explainedNs(link, Op::allReduce, 8, 800, simple, 140), 14);
    EXPECT_DOUBLE_EQ(costs::seenLink(link, Op::allReduce, 8, 800, ll, 280).bytesPerNs, 10);
    EXPECT_DOUBLE_EQ(costs::seenLink(link, Op::allReduce, 8, 800, ll, 70).bytesPerNs, 100);
    EXPECT_DOUBLE_EQ(costs::linkBoundNs(link, Op::allReduce, 8, 800, {Algorithm::tree, Protocol::ll}), 35);
}

TEST(Formulas, HopsAndSharesFollowNccl) {
    const costs::LinkModel link{1000, 100};
    EXPECT_DOUBLE_EQ(costs::collectiveNs(link, Op::allReduce, 8, 0, {Algorithm::ring, Protocol::simple}).high, 14e3);
    EXPECT_DOUBLE_EQ(costs::collectiveNs(link, Op::allReduce, 8, 0, {Algorithm::tree, Protocol::simple}).high, 6e3);
    EXPECT_DOUBLE_EQ(costs::collectiveNs(link, Op::allGather, 8, 0, {Algorithm::ring, Protocol::simple}).high, 7e3);
    EXPECT_DOUBLE_EQ(costs::collectiveNs({0, 100}, Op::allReduce, 8, 800, {Algorithm::ring, Protocol::simple}).high,
                     14);
    EXPECT_DOUBLE_EQ(costs::collectiveNs({0, 100}, Op::allReduce, 8, 800, {Algorithm::ring, Protocol::ll}).low, 28);
    EXPECT_FALSE(costs::isModelled(Op::allGather, {Algorithm::tree, Protocol::simple}));
    EXPECT_FALSE(costs::isModelled(Op::allReduce, {Algorithm::ring, Protocol::unknown}));
}

}  // namespace
}  // namespace rankscope::edits

// SPDX-License-Identifier: Apache-2.0
// RS205: the algorithm or protocol that NCCL used, as its profiler plugin tells, against the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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
    double startupNs = 82e3;  // 14 hops, and 2.5 that NCCL has beside them
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

TEST(Algorithm, AForcedRingLosesToATreeForSmallMessagesOfManyNodes) {
    for (bool tree : {false, true}) {
        test::Player player(32, 4, kLinks);
        player.trace.choice(tree ? Algorithm::tree : Algorithm::ring, Protocol::simple)
            .environment("NCCL_ALGO", tree ? "tree" : "ring");
        std::vector<int> all;
        for (int rank = 0; rank < 32; ++rank) all.push_back(rank);
        const int world = player.communicator(all);
        for (int step = 0; step < 6; ++step) {
            for (int layer = 0; layer < 8; ++layer) {
                player.compute(1e6);
                // 62 hops of a ring, or three from rank to rank and three levels of nodes, up and down.
                player.blocking(world, Op::allReduce, 100e3, (tree ? 15.5 : 78) * 5e3 + 12e3);
            }
            player.endStep();
        }
        const std::string found = test::Player::found(player.trace.analyze());
        EXPECT_EQ(found.find("RS205") != std::string::npos, !tree) << found;
    }
}

TEST(Algorithm, AForcedRingInsideOneNodeLosesNothingToATree) {
    // Messages of 1 MiB, mostly latency: NCCL's base and 14 hops of LL128 take 60 us with 5 us a hop of Simple.
    for (const Protocol protocol : {Protocol::ll128, Protocol::ll, Protocol::simple}) {
        Reductions ring;
        ring.protocol = protocol;
        ring.environment = "NCCL_ALGO=ring";
        ring.bytes = 1 << 20;
        ring.backwardNs = 50e3;
        const costs::LinkModel link{5000, 100};
        ring.startupNs = costs::collectiveNs(link, Op::allReduce, 8, ring.bytes, {ring.algorithm, protocol}).middle() -
                         ring.bytes * 1.75 / 100;
        if (protocol == Protocol::ll128) {
            EXPECT_NEAR(ring.startupNs, 66e3, 5e3);  // the bytes reach less than all of the link, too
        }
        const std::string found = test::Player::found(play(ring));
        if (protocol != Protocol::simple) {
            EXPECT_EQ(found.find("RS205"), std::string::npos) << found;
        }
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
    EXPECT_DOUBLE_EQ(costs::explainedNs(link, Op::allReduce, 8, 800, ll, 40), 40);   // within 35 to 70
    EXPECT_DOUBLE_EQ(costs::explainedNs(link, Op::allReduce, 8, 800, ll, 90), 70);   // the device or the link
    EXPECT_DOUBLE_EQ(costs::explainedNs(link, Op::allReduce, 8, 800, ll, 280), 28);  // a tenth of the link
    EXPECT_DOUBLE_EQ(costs::explainedNs(link, Op::allReduce, 8, 800, simple, 140), 14);
    EXPECT_DOUBLE_EQ(costs::seenLink(link, Op::allReduce, 8, 800, ll, 280).bytesPerNs, 10);
    EXPECT_DOUBLE_EQ(costs::seenLink(link, Op::allReduce, 8, 800, ll, 90).bytesPerNs, 100);
    for (Algorithm algorithm : {Algorithm::ring, Algorithm::tree})
        for (Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
            for (const int nodes : {1, 2, 4}) {
                const costs::LinkModel on{1000, 100, nodes, 0.3, nodes > 1 ? 200.0 : 0};
                EXPECT_LE(costs::linkBoundNs(on, Op::allReduce, 8, 1e6, {algorithm, protocol}),
                          1.000001 * costs::collectiveNs(on, Op::allReduce, 8, 1e6, {algorithm, protocol}).high);
            }
}

/// Hops of NCCL's table, whose ring hop by Simple takes 3.4 us over NVLink and 14 us over the network.
double hops(double nvlinkUs, double networkUs = 0, double nearShare = 1) {
    return nvlinkUs / 3.4 * nearShare + networkUs / 14;
}

TEST(Formulas, LatenciesFollowNcclsTable) {
    const costs::LinkModel one{1000, 100};
    const auto middle = [](const costs::LinkModel& link, Op op, int ranks, Algorithm algorithm, Protocol protocol) {
        return costs::latencyHops(link, op, ranks, {algorithm, protocol}).middle();
    };
    EXPECT_DOUBLE_EQ(middle(one, Op::allReduce, 8, Algorithm::ring, Protocol::simple), 14 + hops(8.4));
    EXPECT_DOUBLE_EQ(middle(one, Op::allGather, 8, Algorithm::ring, Protocol::simple), 7 + hops(8.4));
    EXPECT_DOUBLE_EQ(middle(one, Op::allReduce, 8, Algorithm::ring, Protocol::ll), hops(6.6 + 14 * 0.6));
    EXPECT_DOUBLE_EQ(middle(one, Op::allReduce, 8, Algorithm::tree, Protocol::ll), hops(6.8 + 14 * 0.6));
    EXPECT_DOUBLE_EQ(middle(one, Op::send, 2, Algorithm::unknown, Protocol::unknown), 1);
    // Two nodes of four: a ring pays the network where it crosses it, a tree once up and once down.
    const costs::LinkModel two{1000, 100, 2, 0.25, 100};
    EXPECT_DOUBLE_EQ(middle(two, Op::allGather, 8, Algorithm::ring, Protocol::ll), hops(6.6 + 6 * 0.6, 2.7, 0.25));
    EXPECT_NEAR(middle(two, Op::allReduce, 8, Algorithm::tree, Protocol::simple), hops(8.4 + 6 * 4, 28, 0.25), 1e-9);
    // PCIe's own hops, in those of its ring by Simple.
    const costs::LinkModel pcie{1000, 20};
    EXPECT_DOUBLE_EQ(middle(pcie, Op::allReduce, 8, Algorithm::ring, Protocol::ll), (6.6 + 14 * 1.0) / 5.7);
}

TEST(Formulas, SharesFollowNcclsTableAndGrowWithTheMessage) {
    const costs::AlgorithmChoice ring{Algorithm::ring, Protocol::simple}, tree{Algorithm::tree, Protocol::simple},
        ll{Algorithm::ring, Protocol::ll};
    const costs::LinkModel one{5000, 100};
    EXPECT_EQ(costs::bandwidthShare(one, Op::allReduce, ring, costs::kAnySize).low, 1);
    EXPECT_DOUBLE_EQ(costs::bandwidthShare(one, Op::allReduce, ll, costs::kAnySize).high, 0.4);
    EXPECT_DOUBLE_EQ(costs::bandwidthShare({5000, 20}, Op::allReduce, ll, costs::kAnySize).high, 0.5);
    double last = 0, lastNs = 0;
    for (double bytes = 1024; bytes < 1e10; bytes *= 4) {
        const double share = costs::bandwidthShare(one, Op::allReduce, ring, bytes).middle();
        EXPECT_GT(share, last);
        EXPECT_GT(bytes / share, lastNs);
        last = share;
        lastNs = bytes / share;
    }
    EXPECT_GT(last, 0.99);
    // Between two nodes a tree's bytes cross once: twice a ring's rate, as far as the ports bear it.
    const costs::LinkModel fastPorts{5000, 20, 2, 0.3, 200}, slowPorts{5000, 160, 2, 0.3, 200};
    EXPECT_DOUBLE_EQ(costs::bandwidthShare(fastPorts, Op::allReduce, tree, costs::kAnySize).high, 2);
    EXPECT_DOUBLE_EQ(costs::bandwidthShare(fastPorts, Op::allReduce, tree, costs::kAnySize).low, 1.6);
    EXPECT_DOUBLE_EQ(costs::bandwidthShare(slowPorts, Op::allReduce, tree, costs::kAnySize).high, 0.92 * 1.25);
    EXPECT_LE(costs::bandwidthShare({5000, 20, 4, 0.3, 200}, Op::allReduce, tree, costs::kAnySize).high, 0.92);
    EXPECT_FALSE(costs::isModelled(Op::allGather, {Algorithm::tree, Protocol::simple}));
    EXPECT_FALSE(costs::isModelled(Op::allReduce, {Algorithm::ring, Protocol::unknown}));
}

TEST(Formulas, InsideOneNodeNoTreeIsFasterThanTheBestRing) {
    for (const double gbps : {20.0, 100.0, 300.0})
        for (double bytes = 1024; bytes < 1e10; bytes *= 2) {
            const costs::LinkModel link{6000, gbps};
            std::map<Algorithm, double> best;
            for (costs::AlgorithmChoice choice : costs::algorithmChoices(Op::allReduce)) {
                const double ns = costs::collectiveNs(link, Op::allReduce, 8, bytes, choice).middle();
                auto [at, first] = best.try_emplace(choice.algorithm, ns);
                if (!first) at->second = std::min(at->second, ns);
            }
            EXPECT_LE(best[Algorithm::ring], best[Algorithm::tree]) << gbps << " GB/s, " << bytes << " B";
        }
}

}  // namespace
}  // namespace rankscope::edits

// SPDX-License-Identifier: Apache-2.0
// Which way between nodes is slow, from what the senders' proxies spent on the network.
#include <gtest/gtest.h>

#include "analyzer/job/analysis.h"
#include "analyzer/job/link_suspects.h"

namespace rankscope::job {
namespace {

constexpr int64_t kBytes = 8 << 20;

/// Nodes of equal size with one group of all ranks; its ring goes from node to node once per rail, as slow as the
/// slowest edge.
struct Ring {
    Ring(int nodeCount, int ranksOfNode) : nodes(nodeCount), perNode(ranksOfNode) {
        facts::Communicator all;
        all.id = 1;
        all.size = nodes * perNode;
        all.nodes = nodes;
        for (int rank = 0; rank < all.size; ++rank) {
            all.ranks.push_back(rank);
            facts::RankFacts facts;
            facts.rank = rank;
            facts.hostId = rank / perNode;
            facts.host = "node" + std::to_string(rank / perNode);
            facts.recorded = true;
            analysis.facts.ranks.push_back(facts);
            facts::RankSummary summary;
            summary.rank = rank;
            analysis.ranks.push_back(std::move(summary));
        }
        analysis.facts.communicators[1] = all;
    }

    int next(int rank) const { return (rank + perNode) % (nodes * perNode); }
    /// Every rank sends to the one on the next node: five messages, at 40 bytes per ns divided by `factor(sender,
    /// receiver)`.
    template <typename Factor>
    Ring& send(Factor factor, int64_t bytes = kBytes, int messages = 5) {
        for (const auto held = analysis.ranks.change(); facts::RankSummary & rank : *held)
            for (int i = 0; i < messages; ++i)
                rank.networkSends.push_back(
                    {1, i + 1, next(rank.rank), bytes,
                     static_cast<int64_t>(static_cast<double>(bytes) / 40 * factor(rank.rank, next(rank.rank))),
                     ++rows});
        return *this;
    }

    /// "3", "3-7" or "2+3" of each suspect, with the slowness of the group's collectives.
    std::string suspects(double slowness) const {
        LinkProbe group;
        group.communicatorId = 1;
        group.betweenNodes = true;
        group.ranks = analysis.facts.communicators.at(1).ranks;
        group.slowness = slowness;
        std::string text;
        const std::vector<LinkProbe> edges = networkEdges(analysis);
        for (const LinkSuspect& suspect : slowNetworkEdges(analysis, edges, {&group})) {
            EXPECT_FALSE(suspect.network.empty());
            EXPECT_FALSE(suspect.rows.empty());
            if (!text.empty()) text += " ";
            for (int rank : suspect.ranks)
                text += std::to_string(rank) + (rank == suspect.ranks.back() ? "" : suspect.pair ? "-" : "+");
        }
        return text;
    }

    int nodes, perNode;
    int64_t rows = 0;
    Analysis analysis;
};

TEST(NetworkEdges, OfTwoNodesThePairIsNamed) {
    const auto slow = [](int from, int to) { return from == 3 || to == 3 ? 4.0 : 1.0; };
    EXPECT_EQ(Ring(2, 4).send(slow).suspects(4), "3-7");
}

TEST(NetworkEdges, OfMoreNodesTheRankIsNamed) {
    const auto slow = [](int from, int to) { return from == 5 || to == 5 ? 4.0 : 1.0; };
    EXPECT_EQ(Ring(4, 4).send(slow).suspects(4), "5");
    EXPECT_EQ(Ring(3, 1).send([](int from, int to) { return from == 1 || to == 1 ? 4.0 : 1.0; }).suspects(4), "1");
}

TEST(NetworkEdges, ANodeWhoseEdgesAreAllSlowIsNamed) {
    const auto slow = [](int from, int to) { return from / 2 == 1 || to / 2 == 1 ? 10.0 : 1.0; };
    EXPECT_EQ(Ring(3, 2).send(slow).suspects(10), "2+3");
}

TEST(NetworkEdges, APairOneWayIsNamed) {
    const auto slow = [](int from, int to) { return from == 1 && to == 5 ? 3.0 : 1.0; };
    EXPECT_EQ(Ring(4, 4).send(slow).suspects(3), "1-5");
}

TEST(NetworkEdges, TwoSlowPairsAreTwoSuspectsOfWhichTheSlowerExplainsTheGroup) {
    const auto slow = [](int from, int to) {
        return std::min(from, to) == 1 ? 3.0 : std::min(from, to) == 2 ? 5.0 : 1.0;
    };
    EXPECT_EQ(Ring(2, 4).send(slow).suspects(5), "2-6");
}

TEST(NetworkEdges, AllSlowAlikeNamesNobody) {
    EXPECT_EQ(Ring(2, 4).send([](int, int) { return 5.0; }).suspects(5), "");
    // The only two nodes: with one NIC slow all edges are.
    EXPECT_EQ(Ring(2, 1).send([](int, int) { return 5.0; }).suspects(5), "");
}

TEST(NetworkEdges, JustUnderTheThresholdNobodyIsNamed) {
    const auto slow = [](int from, int to) { return from == 3 || to == 3 ? 1.45 : 1.0; };
    EXPECT_EQ(Ring(2, 4).send(slow).suspects(1.6), "");
}

/// All links are slow by six, one of them by ten: most of what is lost is not that one's fault.
TEST(NetworkEdges, AnEdgeThatExplainsLittleOfWhatIsLostIsNotBlamed) {
    const auto slow = [](int from, int to) { return from == 3 || to == 3 ? 10.0 : 6.0; };
    EXPECT_EQ(Ring(2, 4).send(slow).suspects(10), "");
}

TEST(NetworkEdges, SmallMessagesAndFewOnesTellNothing) {
    const auto slow = [](int from, int to) { return from == 3 || to == 3 ? 4.0 : 1.0; };
    EXPECT_EQ(Ring(2, 4).send(slow, 100'000).suspects(4), "");
    EXPECT_EQ(Ring(2, 4).send(slow, kBytes, 2).suspects(4), "");
}

TEST(NetworkEdges, WithoutProxyEventsThereAreNone) {
    EXPECT_EQ(Ring(2, 4).suspects(4), "");
}

/// Sizes are compared with their like: the rank that sends only small messages, which are slower per byte, is no
/// suspect.
TEST(NetworkEdges, EdgesAreComparedAtTheSameSize) {
    Ring ring(2, 4);
    for (const auto held = ring.analysis.ranks.change(); facts::RankSummary & rank : *held) {
        const int64_t bytes = rank.rank % 4 == 3 ? 2 << 20 : 64 << 20;
        const double rate = rank.rank % 4 == 3 ? 20 : 40;
        for (int i = 0; i < 5; ++i)
            rank.networkSends.push_back({1, i + 1, ring.next(rank.rank), bytes,
                                         static_cast<int64_t>(static_cast<double>(bytes) / rate), ++ring.rows});
    }
    EXPECT_EQ(ring.suspects(4), "");
}

}  // namespace
}  // namespace rankscope::job

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "reference/vgpu/engine/cluster.h"
#include "reference/vgpu/engine/nccl_cost_model.h"
#include "reference/vgpu/engine/reductions.h"

namespace rankscope::vgpu {
namespace {

// The default cluster's hops by Simple take 6 us inside a node and 18 us between nodes, NCCL's own 3.4 and 14 us.
constexpr double kNear = 6 / 3.4, kNetwork = 18.0 / 14;

int64_t microseconds(double us) {
    return static_cast<int64_t>(1000 * us);
}

TEST(VgpuCostModel, ringAllReduceTakesItsBaseAndTwoHopsPerOtherRank) {
    CollectiveCost cost = costOf(Cluster{}, {8, 1, 8}, TransferKind::allReduce, 8e9, Algorithm::ring, Protocol::simple);
    EXPECT_NEAR(cost.latencyNs, microseconds(8.4 * kNear + 14 * 6), 1);
    EXPECT_DOUBLE_EQ(cost.busBytes, 14e9);
    EXPECT_NEAR(cost.efficiency, 1.0, 0.01);
    EXPECT_EQ(cost.networkShare, 0);
}

TEST(VgpuCostModel, aRingPaysTheNetworkOnlyBetweenNodes) {
    CollectiveCost cost = costOf(Cluster{}, {8, 2, 4}, TransferKind::allGather, 8e6, Algorithm::ring, Protocol::simple);
    EXPECT_NEAR(cost.latencyNs, microseconds(8.4 * kNear + 6 * 6 + 18), 1);
    CollectiveCost spread = costOf(Cluster{}, {8, 8, 1}, TransferKind::allGather, 8e6, Algorithm::ring, Protocol::ll);
    EXPECT_NEAR(spread.latencyNs, microseconds(6.6 * kNear + 7 * 5 * kNetwork), 1);  // a tree's hops, nothing hides
}

TEST(VgpuCostModel, aTreeGoesThroughANodeAsAChainAndOverNodesByLevels) {
    CollectiveCost cost = costOf(Cluster{}, {16, 4, 4}, TransferKind::allReduce, 1024, Algorithm::tree, Protocol::ll);
    EXPECT_NEAR(cost.latencyNs, microseconds(6.8 * kNear + 2 * (3 * 0.6 * kNear + 2 * 5 * kNetwork)), 1);
}

TEST(VgpuCostModel, largeRingsOverNodesReachAPlateau) {
    const auto latencyOf = [](double bytes) {
        return costOf(Cluster{}, {8, 2, 4}, TransferKind::allReduce, bytes, Algorithm::ring, Protocol::simple)
            .latencyNs;
    };
    EXPECT_NEAR(static_cast<double>(latencyOf(1e6)) / static_cast<double>(latencyOf(1024)), 1.4, 0.001);
}

TEST(VgpuCostModel, ofTwoNodesATreesSumsCrossTheNetworkOnce) {
    const auto busRate = [](const CommShape& shape, Algorithm algorithm) {
        const CollectiveCost cost = costOf(Cluster{}, shape, TransferKind::allReduce, 8e9, algorithm, Protocol::simple);
        return linkGbps(Cluster{}, shape, TransferKind::allReduce, algorithm) * cost.efficiency;
    };
    // Two ranks in each node: rings at 2 x 40 GB/s, a tree at 0.92 of twice as much, or of the port's 200 GB/s.
    EXPECT_NEAR(busRate({4, 2, 2}, Algorithm::ring), 80, 1);
    EXPECT_NEAR(busRate({4, 2, 2}, Algorithm::tree), 0.92 * 160, 2);
    EXPECT_NEAR(busRate({8, 2, 4}, Algorithm::tree), 0.92 * 200, 2);
    EXPECT_NEAR(busRate({8, 4, 2}, Algorithm::tree), 0.92 * 80, 1);
}

TEST(VgpuCostModel, rateGrowsWithTheMessageAndSoDoesTheTime) {
    double lastRate = 0, lastNs = 0;
    for (double bytes = 1024; bytes < 1e10; bytes *= 2) {
        const CollectiveCost cost =
            costOf(Cluster{}, {8, 1, 8}, TransferKind::allReduce, bytes, Algorithm::ring, Protocol::simple);
        EXPECT_GT(cost.efficiency, lastRate);
        EXPECT_GT(cost.busBytes / cost.efficiency, lastNs);
        lastRate = cost.efficiency;
        lastNs = cost.busBytes / cost.efficiency;
    }
    EXPECT_GT(lastRate, 0.98);
}

TEST(VgpuCostModel, treesAreCorrectedBySize) {
    const auto shareOf = [](double bytes) {
        return bandwidthShare(Cluster{}, {8, 1, 8}, TransferKind::allReduce, Algorithm::tree, Protocol::simple, bytes);
    };
    EXPECT_NEAR(shareOf(16.0 * (1 << 30)), 0.92, 0.01);
    EXPECT_LT(shareOf(16.0 * (1 << 20)), shareOf(8.0 * (1 << 20)));  // 0.7 against 0.8
}

TEST(VgpuCostModel, allToAllGoesOverEachRanksOwnCard) {
    Cluster cluster;
    // 12 of 15 parts leave a node of four: 40 GB/s of a card are 50 GB/s of bus bandwidth.
    EXPECT_DOUBLE_EQ(linkGbps(cluster, {16, 4, 4}, TransferKind::allToAll, Algorithm::ring), 50);
    const auto latencyOf = [&](uint32_t ranks) {
        return costOf(cluster, {ranks, 1, ranks}, TransferKind::allToAll, 1024, Algorithm::ring, Protocol::simple)
            .latencyNs;
    };
    EXPECT_NEAR(static_cast<double>(latencyOf(8) - latencyOf(2)), 6 * 0.3 * 6000, 2);  // six peers more
    EXPECT_FALSE(isAvailable(cluster, {8, 1, 8}, TransferKind::allToAll, Algorithm::ring, Protocol::ll));
}

TEST(VgpuCostModel, linksReachTheirShareOfWhatTheyAreCalled) {
    Cluster cluster = parseCluster(R"({"cluster": {"intra": {"gbps": 300, "reached": 0.78}}})");
    EXPECT_DOUBLE_EQ(cluster.portGbps(0), 234);
    EXPECT_DOUBLE_EQ(linkGbps(cluster, {8, 1, 8}, TransferKind::allReduce, Algorithm::ring), 234);
    EXPECT_DOUBLE_EQ(cluster.nicGbps(0, 0), 40);
}

TEST(VgpuCostModel, ll128IsNotTakenOverPcieUnlessAsked) {
    Cluster cluster = parseCluster(R"({"cluster": {"intra": {"gbps": 25}}})");
    ASSERT_TRUE(cluster.intra.pcie);
    AlgorithmRules none, named, ofOther;
    ASSERT_TRUE(named.parse(nullptr, "^LL") && ofOther.parse(nullptr, "Simple,LL,LL128;allgather:Simple"));
    const auto ll128 = [&](const Cluster& on, const AlgorithmRules& rules) {
        return costTable(on, {8, 1, 8}, rules, TransferKind::allReduce, 1e6)[1][1];
    };
    EXPECT_EQ(ll128(cluster, none), kUnavailable);
    EXPECT_GT(ll128(cluster, named), 0);
    EXPECT_GT(ll128(cluster, ofOther), 0);
    EXPECT_GT(ll128(Cluster{}, none), 0);
    // LL is held by its flags there, not by how fast a GPU polls for them.
    EXPECT_NEAR(costOf(cluster, {8, 1, 8}, TransferKind::allReduce, 1e10, Algorithm::ring, Protocol::ll).efficiency,
                0.5, 0.01);
    AlgorithmRules gathersOnly;
    ASSERT_TRUE(gathersOnly.parse(nullptr, "allgather:^LL"));
    EXPECT_FALSE(gathersOnly.namesProtocols(TransferKind::allReduce));
    EXPECT_TRUE(gathersOnly.namesProtocols(TransferKind::allGather));
}

TEST(VgpuCostModel, smallMessagesTakeLatencyProtocolsAndLargeOnesBandwidth) {
    CommShape shape{8, 1, 8};
    auto small = chooseCollective(Cluster{}, shape, {}, TransferKind::allReduce, 1024);
    auto large = chooseCollective(Cluster{}, shape, {}, TransferKind::allReduce, 1e9);
    ASSERT_TRUE(small && large);
    EXPECT_EQ(small->protocol, Protocol::ll);
    EXPECT_EQ(large->protocol, Protocol::simple);
    EXPECT_EQ(large->algorithm, Algorithm::ring);
}

TEST(VgpuCostModel, protocolsTradeBandwidthForLatency) {
    CommShape shape{8, 1, 8};
    CollectiveCost ll = costOf(Cluster{}, shape, TransferKind::allReduce, 1e9, Algorithm::ring, Protocol::ll);
    CollectiveCost ll128 = costOf(Cluster{}, shape, TransferKind::allReduce, 1e9, Algorithm::ring, Protocol::ll128);
    // Flags hold LL to 0.3 of an NVLink's rate.
    EXPECT_NEAR(ll.efficiency, 0.3, 0.01);
    EXPECT_NEAR(ll128.efficiency, 0.92, 0.01);
    EXPECT_LT(ll.latencyNs, ll128.latencyNs);
    EXPECT_LT(ll128.latencyNs, 14 * 6000);
}

TEST(VgpuCostModel, onlyWhatNcclHasIsAvailable) {
    Cluster plain, sharp;
    sharp.nvls = true;
    CommShape one{8, 1, 8}, two{8, 2, 4}, spread{8, 8, 1};
    auto has = [](const Cluster& cluster, CommShape shape, TransferKind function, Algorithm algorithm,
                  Protocol protocol = Protocol::simple) {
        return isAvailable(cluster, shape, function, algorithm, protocol);
    };
    EXPECT_TRUE(has(plain, two, TransferKind::allReduce, Algorithm::tree, Protocol::ll));
    EXPECT_FALSE(has(plain, two, TransferKind::allGather, Algorithm::tree));
    EXPECT_FALSE(has(plain, two, TransferKind::broadcast, Algorithm::tree));
    EXPECT_FALSE(has(plain, one, TransferKind::allReduce, Algorithm::nvls));
    EXPECT_TRUE(has(sharp, one, TransferKind::allReduce, Algorithm::nvls));
    EXPECT_TRUE(has(sharp, one, TransferKind::reduceScatter, Algorithm::nvls));
    EXPECT_FALSE(has(sharp, one, TransferKind::allReduce, Algorithm::nvls, Protocol::ll));
    EXPECT_FALSE(has(sharp, two, TransferKind::allReduce, Algorithm::nvls));
    EXPECT_TRUE(has(sharp, two, TransferKind::allReduce, Algorithm::nvlsTree));
    EXPECT_TRUE(has(plain, spread, TransferKind::allGather, Algorithm::pat));
    EXPECT_FALSE(has(plain, two, TransferKind::allGather, Algorithm::pat));
    EXPECT_FALSE(has(plain, two, TransferKind::allReduce, Algorithm::collnetDirect));
}

TEST(VgpuCostModel, nvlsReducesInTheSwitch) {
    Cluster cluster;
    cluster.nvls = true;
    auto chosen = chooseCollective(cluster, {8, 1, 8}, {}, TransferKind::allReduce, 1e9);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->algorithm, Algorithm::nvls);
    // 1.05 of a port's rate, which a ring cannot exceed.
    EXPECT_NEAR(200 * chosen->efficiency, 210, 2);
}

TEST(VgpuCostModel, oneGpuPerNodeGathersByPatWhenLatencyCounts) {
    auto small = chooseCollective(Cluster{}, {16, 16, 1}, {}, TransferKind::allGather, 1e6);
    auto large = chooseCollective(Cluster{}, {16, 16, 1}, {}, TransferKind::allGather, 1e10);
    ASSERT_TRUE(small && large);
    EXPECT_EQ(small->algorithm, Algorithm::pat);
    EXPECT_EQ(large->algorithm, Algorithm::ring);
}

TEST(VgpuCostModel, theCostTableHoldsWhatMayBeChosen) {
    AlgorithmRules rules;
    ASSERT_TRUE(rules.parse("ring", "^ll"));
    CostTable table = costTable(Cluster{}, {8, 2, 4}, rules, TransferKind::allReduce, 1e6);
    EXPECT_EQ(table[0][2], kUnavailable);
    EXPECT_EQ(table[1][0], kUnavailable);
    CollectiveCost ring = costOf(Cluster{}, {8, 2, 4}, TransferKind::allReduce, 1e6, Algorithm::ring, Protocol::simple);
    // 1.75 MB at the share that they reach of min(200, 4 x 40) GB/s.
    EXPECT_NEAR(table[1][2], static_cast<double>(ring.latencyNs) / 1000 + 1.75e6 / 160e3 / ring.efficiency, 1e-2);
    EXPECT_FALSE(cheapest(
        CostTable{{{-1, -1, -1}, {-1, -1, -1}, {-1, -1, -1}, {-1, -1, -1}, {-1, -1, -1}, {-1, -1, -1}, {-1, -1, -1}}},
        Cluster{}, {8, 2, 4}, TransferKind::allReduce, 1e6));
}

TEST(VgpuCostModel, fewerChannelsLeaveMoreOfTheDeviceToComputeAndLessOfTheLink) {
    Cluster cluster = parseCluster(R"({"faults": [{"kind": "sm_contention", "factor": 1.4}]})");
    EXPECT_DOUBLE_EQ(cluster.rateBesideTransfers(), 1 / 1.4);
    cluster.maxChannels = 4;
    EXPECT_DOUBLE_EQ(cluster.rateBesideTransfers(), 1 / 1.1);
    CollectiveCost cost = costOf(cluster, {8, 1, 8}, TransferKind::allReduce, 1e10, Algorithm::ring, Protocol::simple);
    EXPECT_EQ(cost.channels, 4);
    EXPECT_NEAR(cost.efficiency, 0.5, 0.01);
}

TEST(VgpuCostModel, environmentForcesPerFunction) {
    AlgorithmRules rules;
    ASSERT_TRUE(rules.parse("allreduce:tree;allgather:ring", "^LL;allreduce:LL128"));
    EXPECT_FALSE(rules.allows(TransferKind::allReduce, Algorithm::ring, Protocol::ll128));
    EXPECT_TRUE(rules.allows(TransferKind::allReduce, Algorithm::tree, Protocol::ll128));
    EXPECT_FALSE(rules.allows(TransferKind::allReduce, Algorithm::tree, Protocol::simple));
    EXPECT_TRUE(rules.allows(TransferKind::allGather, Algorithm::ring, Protocol::simple));
    EXPECT_FALSE(rules.allows(TransferKind::allGather, Algorithm::ring, Protocol::ll));
}

TEST(VgpuCostModel, unknownTokensAreRefused) {
    AlgorithmRules rules;
    EXPECT_FALSE(rules.parse("rings", nullptr));
    EXPECT_FALSE(rules.parse(nullptr, "LL256"));
    EXPECT_FALSE(rules.parse("sendrecv:ring", nullptr));
}

TEST(VgpuCluster, faultsSlowWhatTheyName) {
    Cluster cluster = parseCluster(R"({"cluster": {"nodes": 2, "ranks_per_node": 2, "intra": {"gbps": 100}},
        "faults": [{"kind": "straggler", "rank": 3, "factor": 2}, {"kind": "slow_link", "rank": 1, "gbps": 10},
                   {"kind": "slow_nic", "node": 0, "gbps": 5}, {"kind": "clock_offset", "host": 1, "us": 2, "ppm": 10}]})");
    EXPECT_DOUBLE_EQ(cluster.computeFactor(3, 1), 2);
    EXPECT_DOUBLE_EQ(cluster.computeFactor(2, 1), 1);
    EXPECT_DOUBLE_EQ(cluster.portGbps(1), 10);
    EXPECT_DOUBLE_EQ(cluster.portGbps(0), 100);
    EXPECT_DOUBLE_EQ(cluster.nicGbps(0, 0), 5);
    EXPECT_DOUBLE_EQ(cluster.nicGbps(2, 1), 40);
    EXPECT_EQ(cluster.stamp(1, 1'000'000, 0), 1'000'000 + 2000 + 10);
    EXPECT_EQ(cluster.stamp(0, 1'000'000, 0), 1'000'000);
}

TEST(VgpuCluster, nodesAreWhereTheRanksReallyRun) {
    Cluster cluster = parseCluster(
        R"({"cluster": {"nodes": 2, "ranks_per_node": 4}, "faults": [{"kind": "slow_node", "node": 1, "factor": 3}]})");
    EXPECT_EQ(cluster.placement(5, nullptr, -1), 1);    // dealt out in blocks
    EXPECT_EQ(cluster.placement(5, nullptr, 0), 0);     // the launcher knows better
    EXPECT_EQ(cluster.placement(2, "node1", -1), 1);    // the virtual host's name comes first
    EXPECT_EQ(cluster.placement(2, "gpu-box", -1), 0);  // a name that tells nothing
    EXPECT_EQ(cluster.placement(2, "rack77", 1), 1);    // a number that is no node of this cluster
    EXPECT_DOUBLE_EQ(cluster.computeFactor(2, 1), 3);
    EXPECT_DOUBLE_EQ(cluster.computeFactor(5, 0), 1);
}

TEST(VgpuCluster, allocationsCostWhatTheScenarioSays) {
    EXPECT_DOUBLE_EQ(parseCluster(R"({"cluster": {"malloc_us": 80, "free_us": 40}})").freeUs, 40);
    Cluster churn = parseCluster(R"({"faults": [{"kind": "alloc_churn", "per_step": 4, "us": 250}]})");
    EXPECT_DOUBLE_EQ(churn.mallocUs, 250);
    EXPECT_DOUBLE_EQ(churn.freeUs, 250);
}

TEST(VgpuCluster, noiseIsTheSameForTheSameSeedAndCentred) {
    double sum = 0, squares = 0;
    for (uint64_t k = 0; k < 4000; k++) {
        double value = normalNoise(7, 1, 2, k);
        EXPECT_EQ(value, normalNoise(7, 1, 2, k));
        sum += value;
        squares += value * value;
    }
    EXPECT_NEAR(sum / 4000, 0, 0.06);
    EXPECT_NEAR(squares / 4000, 1, 0.1);
    EXPECT_NE(normalNoise(7, 1, 2, 0), normalNoise(8, 1, 2, 0));
}

template <typename T>
T reduced(ncclDataType_t type, ncclRedOp_t op, std::vector<T> inputs) {
    std::vector<const std::byte*> pointers;
    for (T& input : inputs) pointers.push_back(reinterpret_cast<std::byte*>(&input));
    T out{};
    reduceElements({type, op, 1}, pointers.data(), pointers.size(), reinterpret_cast<std::byte*>(&out), sizeof out);
    return out;
}

TEST(VgpuReductions, areExactForWhatTheTypesCanHold) {
    EXPECT_EQ(reduced<float>(ncclFloat32, ncclSum, {1, 2, 3.5f}), 6.5f);
    EXPECT_EQ(reduced<double>(ncclFloat64, ncclAvg, {1, 2, 3}), 2.0);
    EXPECT_EQ(reduced<int32_t>(ncclInt32, ncclMin, {4, -7, 3}), -7);
    EXPECT_EQ(reduced<uint64_t>(ncclUint64, ncclProd, {3, 5, 7}), 105u);
    EXPECT_EQ(reduced<uint16_t>(ncclBfloat16, ncclSum, {0x3f80, 0x4000}), 0x4040);  // 1 + 2 = 3
    EXPECT_EQ(reduced<uint16_t>(ncclBfloat16, ncclSum, {0x0000, 0x0000}), 0x0000);  // 0 + 0 = 0
    EXPECT_EQ(reduced<uint16_t>(ncclBfloat16, ncclSum, {0x0001, 0x0002}), 0x0003);  // subnormals add up
    EXPECT_EQ(reduced<uint16_t>(ncclFloat16, ncclSum, {0x3c00, 0x3800}), 0x3e00);   // 1 + 0.5 = 1.5
    EXPECT_EQ(reduced<uint16_t>(ncclFloat16, ncclMax, {0xbc00, 0x0001}), 0x0001);   // -1 and the smallest subnormal
}

}  // namespace
}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "reference/vgpu/engine/nccl_world.h"

namespace rankscope::vgpu {
namespace {

constexpr CommShape kNode{8, 1, 8}, kNodes{16, 2, 8};
constexpr double kMiB = 1 << 20;

double factor(uint64_t world, const CommShape& shape, double bytes, Protocol protocol = Protocol::simple) {
    return worldFactor(world, shape, TransferKind::allReduce, Algorithm::ring, protocol, bytes);
}

/// |ln| of the factors of sizes from 1 KiB to 1 GiB, without kinks, in their order.
std::vector<double> logarithms(const CommShape& shape) {
    std::vector<double> all;
    for (uint64_t world = 1; world <= 300; world++)
        for (double bytes = 1024; bytes <= 1024 * kMiB; bytes *= 2)
            all.push_back(std::abs(std::log(factor(world, shape, bytes))));
    std::sort(all.begin(), all.end());
    return all;
}

TEST(VgpuWorld, theIdealOneIsTheModel) {
    EXPECT_EQ(factor(0, kNode, kMiB), 1);
    Cluster cluster = parseCluster(R"({"cluster": {"nodes": 2}, "world": "ideal"})");
    EXPECT_EQ(cluster.world, 0u);
    EXPECT_EQ(cluster.intra.reached, 1);
    EXPECT_EQ(cluster.inter.reached, 1);
}

TEST(VgpuWorld, differsAsMuchAsPublishedTablesDo) {
    const std::vector<double> near = logarithms(kNode), far = logarithms(kNodes);
    EXPECT_NEAR(near[near.size() / 2], 0.1, 0.03);
    EXPECT_NEAR(far[far.size() / 2], 0.22, 0.06);
    EXPECT_NEAR(near[near.size() * 9 / 10], 0.3, 0.1);
    EXPECT_NEAR(far[far.size() * 9 / 10], 0.7, 0.2);
}

TEST(VgpuWorld, isSmoothButForItsKinks) {
    size_t steps = 0, kinked = 0;
    double rough = 0;
    for (uint64_t world = 1; world <= 200; world++)
        for (double bytes = 1024; bytes < 1024 * kMiB; bytes *= 2) {
            const double step = std::abs(std::log(factor(world, kNode, 2 * bytes) / factor(world, kNode, bytes)));
            if (step > 0.6) {
                kinked++;
            } else {
                steps++;
                rough += step;
            }
        }
    EXPECT_LT(rough / static_cast<double>(steps), 0.1);
    EXPECT_GT(kinked, 20u);  // one table in eight has one, with a step up and one down
    EXPECT_LT(kinked, 100u);
}

/// Of 64 MiB over nodes no published table is later than 1.3 times the model at the least share of healthy links; one
/// in three has a kink, of one power of two in 32 KiB to 64 MiB.
TEST(VgpuWorld, noHealthyLinkIsLaterThanThoseOfPublishedTables) {
    size_t later = 0, bounded = 0;
    for (uint64_t world = 1; world <= 2000; world++) {
        const double alone = factor(world, kNodes, 64 * kMiB);
        later += alone > 1.31;
        bounded += alone > 1.29 && alone < 1.31;
        const double wider =
            worldFactor(world, kNodes, TransferKind::allReduce, Algorithm::ring, Protocol::simple, 64 * kMiB, 1.2);
        if (alone < 1.31) {
            EXPECT_GE(wider, alone);
            EXPECT_LE(wider, alone < 1.29 ? alone : 1.2 * 1.31);
        }
    }
    EXPECT_LT(later, 2000 * 0.34 / 11 * 1.5);
    EXPECT_GT(bounded, 100u);
}

TEST(VgpuWorld, isTheSameForTheSameAndAnotherForOthers) {
    EXPECT_EQ(factor(5, kNode, kMiB), factor(5, kNode, kMiB));
    const std::set<double> all{factor(5, kNode, kMiB), factor(6, kNode, kMiB), factor(5, kNodes, kMiB),
                               factor(5, kNode, kMiB, Protocol::ll)};
    EXPECT_EQ(all.size(), 4u);
}

TEST(VgpuWorld, noRateExceedsWhatTheLinksAreToldToDo) {
    for (int world = 1; world <= 200; world++) {
        const Cluster cluster =
            parseCluster(R"({"cluster": {"nodes": 2, "ranks_per_node": 8, "intra": {"gbps": 300}}, "world": )" +
                         std::to_string(world) + "}");
        EXPECT_LT(cluster.intra.reached, 1);
        for (const CommShape& shape : {kNode, kNodes})
            for (double bytes = kMiB; bytes <= 4096 * kMiB; bytes *= 4) {
                const CollectiveCost cost =
                    chooseCollective(cluster, shape, {}, TransferKind::allGather, bytes).value();
                const double told = shape.nodes == 1 ? 300 : std::min(300.0, 8 * 40.0);
                EXPECT_LE(linkGbps(cluster, shape, TransferKind::allGather, cost.algorithm) * cost.efficiency,
                          told * 1.0001);
            }
    }
}

/// Of the link that the machine says it has, which no scenario's rate exceeds.
TEST(VgpuWorld, ofAWholePcieLinkIsReachedWhatPublishedTablesReach) {
    for (const auto& [gbps, whole] : {std::pair{20.0, 31.5}, {31.5, 31.5}, {12.0, 15.75}})
        for (int world = 1; world <= 50; world++) {
            const Cluster cluster =
                parseCluster(R"({"cluster": {"intra": {"pcie": true, "gbps": )" + std::to_string(gbps) +
                             R"(}}, "world": )" + std::to_string(world) + "}");
            EXPECT_GE(cluster.intra.reachedGbps(), 0.449 * whole);
            EXPECT_LE(cluster.intra.reachedGbps(), std::min(gbps, 0.761 * whole));
        }
}

TEST(VgpuWorld, ncclDoesNotKnowIt) {
    Cluster cluster;
    for (double bytes = 1024; bytes <= 1024 * kMiB; bytes *= 2) {
        const auto ideal = chooseCollective(cluster, kNode, {}, TransferKind::allReduce, bytes);
        cluster.world = 3;
        const auto drawn = chooseCollective(cluster, kNode, {}, TransferKind::allReduce, bytes);
        cluster.world = 0;
        EXPECT_EQ(drawn->algorithm, ideal->algorithm);
        EXPECT_EQ(drawn->protocol, ideal->protocol);
        EXPECT_NE(drawn->latencyNs, ideal->latencyNs);
    }
}

}  // namespace
}  // namespace rankscope::vgpu

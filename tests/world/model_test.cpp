// SPDX-License-Identifier: Apache-2.0
// Holds the virtual GPUs' NCCL against published nccl-tests tables: told what a user tells of the links, their makers'
// rates and one latency, it predicts every size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/costs/nccl_tests_table.h"
#include "reference/vgpu/engine/nccl_cost_model.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

const fs::path kTables = RANKSCOPE_RECORDED_TABLES;

struct Point {
    double bytes, us;
};

std::vector<Point> pointsOf(const fs::path& file, store::Op op) {
    const costs::NcclTestsTable table = costs::readNcclTestsTables(file, {op, {}, {}}).at(0);
    std::vector<Point> points;
    for (const costs::NcclTestsRow& row : table.rows)
        if (row.bytes >= 1024) points.push_back({static_cast<double>(row.bytes), table.timeUs(row)});
    return points;
}

/// A machine as its maker describes it, and how many times NCCL's own latencies its latencies are.
struct Links {
    vgpu::CommShape shape;
    vgpu::LinkClass intra, inter;

    double us(vgpu::TransferKind function, double bytes, double latencies) const {
        vgpu::Cluster cluster;
        cluster.nodes = static_cast<int>(shape.nodes);
        cluster.ranksPerNode = static_cast<int>(shape.smallestNode);
        cluster.intra = intra;
        cluster.inter = inter;
        cluster.intra.alphaUs *= latencies;
        cluster.inter.alphaUs *= latencies;
        const vgpu::CostTable table = costTable(cluster, shape, vgpu::AlgorithmRules(), function, bytes);
        const vgpu::CollectiveCost best = cheapest(table, cluster, shape, function, bytes).value();
        return table[static_cast<size_t>(best.algorithm)][static_cast<size_t>(best.protocol)];
    }

    /// The latencies with which the smallest size takes what it takes.
    double latenciesOf(vgpu::TransferKind function, const Point& smallest) const {
        double low = 0.01, high = 100;
        for (int i = 0; i < 60; ++i) {
            const double middle = std::sqrt(low * high);
            (us(function, smallest.bytes, middle) < smallest.us ? low : high) = middle;
        }
        return low;
    }

    /// The mean of |ln(predicted / measured)| over all sizes.
    double error(vgpu::TransferKind function, const std::vector<Point>& points) const {
        const double latencies = latenciesOf(function, points.front());
        double sum = 0;
        for (const Point& point : points) sum += std::abs(std::log(us(function, point.bytes, latencies) / point.us));
        return sum / static_cast<double>(points.size());
    }
};

// A100: 12 links of NVLink 3, 25 GB/s each way, of which nccl-tests reach 0.78 through the switches. The hops are those
// of NCCL's table (src/graph/tuning.cc).
constexpr vgpu::LinkClass kA100{3.4, 300, 0.78}, kEfa{14, 50.0 / 8};  // 4 x 100 Gbit/s for 8 ranks

TEST(Model, EightA100OfANode) {
    if (!fs::exists(kTables)) GTEST_SKIP() << "no recorded tables in " << kTables;
    const Links links{{8, 1, 8}, kA100, kEfa};
    struct {
        const char* name;
        store::Op op;
        vgpu::TransferKind function;
    } const collectives[] = {{"allreduce", store::Op::allReduce, vgpu::TransferKind::allReduce},
                             {"allgather", store::Op::allGather, vgpu::TransferKind::allGather},
                             {"reducescatter", store::Op::reduceScatter, vgpu::TransferKind::reduceScatter},
                             {"broadcast", store::Op::broadcast, vgpu::TransferKind::broadcast},
                             {"reduce", store::Op::reduce, vgpu::TransferKind::reduce},
                             {"alltoall", store::Op::allToAll, vgpu::TransferKind::allToAll}};
    for (const auto& [name, op, function] : collectives) {
        const std::vector<Point> points =
            pointsOf(kTables / "superbench_a100x8" / (std::string("nccl_") + name + ".log"), op);
        ASSERT_GT(points.size(), 20u) << name;
        const double error = links.error(function, points);
        std::printf("8 A100, %s, %zu sizes: %.3f\n", name, points.size(), error);
        EXPECT_LE(error, 0.15) << name;
    }
}

TEST(Model, SixteenA100OfTwoNodes) {
    if (!fs::exists(kTables)) GTEST_SKIP() << "no recorded tables in " << kTables;
    const Links links{{16, 2, 8}, kA100, kEfa};
    // The table does not name its operation; its bandwidths are an all-gather's.
    const std::vector<Point> points =
        pointsOf(kTables / "p4d_a100x16_efa" / "nccl-tests_slurm-104.out", store::Op::allGather);
    ASSERT_GT(points.size(), 10u);
    const double error = links.error(vgpu::TransferKind::allGather, points);
    std::printf("16 A100 of two nodes, all-gather, %zu sizes: %.3f\n", points.size(), error);
    EXPECT_LE(error, 0.30);
}

}  // namespace
}  // namespace rankscope

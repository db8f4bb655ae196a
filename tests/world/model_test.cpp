// SPDX-License-Identifier: Apache-2.0
// Holds the virtual GPUs' NCCL against published nccl-tests tables: told what a user tells of the links, their makers'
// rates and one latency, it predicts every size. An argument names a file of further tables (table_list.h); these are
// printed only.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/costs/device_links.h"
#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/reached_share.h"
#include "analyzer/facts/statistics.h"
#include "collector/store/error.h"
#include "reference/vgpu/engine/nccl_cost_model.h"
#include "tests/world/table_list.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

const fs::path kTables = RANKSCOPE_RECORDED_TABLES;

struct Point {
    double bytes, us;
};

std::vector<Point> pointsOf(const costs::NcclTestsTable& table) {
    std::vector<Point> points;
    for (const costs::NcclTestsRow& row : table.rows)
        if (row.bytes >= 1024) points.push_back({static_cast<double>(row.bytes), table.timeUs(row)});
    return points;
}

std::vector<Point> pointsOf(const fs::path& file, store::Op op) {
    return pointsOf(costs::readNcclTestsTables(file, {op, {}, {}}).at(0));
}

/// A machine as its maker describes it, and how many times NCCL's own latencies its latencies are.
struct Links {
    vgpu::CommShape shape;
    vgpu::LinkClass intra, inter;
    bool nvls = false;
    vgpu::AlgorithmRules rules = {};

    double us(vgpu::TransferKind function, double bytes, double latencies) const {
        vgpu::Cluster cluster;
        cluster.nodes = static_cast<int>(shape.nodes);
        cluster.ranksPerNode = static_cast<int>(shape.smallestNode);
        cluster.intra = intra;
        cluster.inter = inter;
        cluster.nvls = nvls;
        cluster.intra.alphaUs *= latencies;
        cluster.inter.alphaUs *= latencies;
        const vgpu::CostTable table = costTable(cluster, shape, rules, function, bytes);
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

    /// These links with the share of their rate with which the largest size takes what it takes: of the network where
    /// there is one.
    Links reachingWhat(vgpu::TransferKind function, const Point& smallest, const Point& largest) const {
        double low = 1e-3, high = 10;
        Links links = *this;
        vgpu::LinkClass& link = shape.nodes > 1 ? links.inter : links.intra;
        for (int i = 0; i < 60; ++i) {
            link.reached = std::sqrt(low * high);
            const double us = links.us(function, largest.bytes, links.latenciesOf(function, smallest));
            (us > largest.us ? low : high) = link.reached;
        }
        return links;
    }

    /// ln(predicted / measured) of each size.
    std::vector<double> deviations(vgpu::TransferKind function, const std::vector<Point>& points) const {
        const double latencies = latenciesOf(function, points.front());
        std::vector<double> result;
        for (const Point& point : points) result.push_back(std::log(us(function, point.bytes, latencies) / point.us));
        return result;
    }

    /// The mean of |ln(predicted / measured)| over all sizes.
    double error(vgpu::TransferKind function, const std::vector<Point>& points) const {
        double sum = 0;
        for (const double deviation : deviations(function, points)) sum += std::abs(deviation);
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

std::optional<vgpu::TransferKind> functionOf(store::Op op) {
    switch (op) {
        case store::Op::allReduce:
            return vgpu::TransferKind::allReduce;
        case store::Op::allGather:
            return vgpu::TransferKind::allGather;
        case store::Op::reduceScatter:
            return vgpu::TransferKind::reduceScatter;
        case store::Op::broadcast:
            return vgpu::TransferKind::broadcast;
        case store::Op::reduce:
            return vgpu::TransferKind::reduce;
        case store::Op::allToAll:
            return vgpu::TransferKind::allToAll;
        default:
            return std::nullopt;
    }
}

/// A link as its maker describes it, of which NCCL reaches what it reaches of its kind elsewhere, with NCCL's latency.
vgpu::LinkClass linkOf(const std::optional<costs::LinkClass>& told, vgpu::HopKind kind) {
    vgpu::LinkClass link{vgpu::hopLatencyUs(kind, vgpu::Algorithm::ring, vgpu::Protocol::simple), 1};
    if (!told) return link;
    costs::LinkClass stated = *told;
    stated.kind = costs::PeakKind::deviceTable;
    if (kind != vgpu::HopKind::network)
        stated.medium = kind == vgpu::HopKind::pcie ? costs::LinkMedium::pcie : costs::LinkMedium::nvlink;
    link.gbps = told->bytesPerNs;
    link.reached = costs::reachedShare(stated, kind == vgpu::HopKind::network).share.middle();
    // The share of PCIe is of what NCCL counts.
    if (kind == vgpu::HopKind::pcie) link.reached *= costs::kPcieShare;
    link.pcie = kind == vgpu::HopKind::pcie;
    return link;
}

Links linksOf(const ListedTable& listed, const costs::NcclTestsTable& table) {
    const costs::LinkPeaks peaks = costs::parseLinkPeaks(listed.links);
    const bool pcieRate = peaks.intra && vgpu::isPcieRate(peaks.intra->bytesPerNs);
    const auto nodes = static_cast<uint32_t>(std::max(1, table.nodes)), ranks = static_cast<uint32_t>(table.ranks);
    Links links{{ranks, nodes, ranks / nodes},
                linkOf(peaks.intra, listed.pcie || pcieRate ? vgpu::HopKind::pcie : vgpu::HopKind::nvlink),
                linkOf(peaks.inter, vgpu::HopKind::network),
                listed.nvls};
    const bool algorithm = table.algorithm != store::Algorithm::unknown;
    const bool protocol = table.protocol != store::Protocol::unknown;
    links.rules.parse(algorithm ? costs::toSetting(table.algorithm).c_str() : nullptr,
                      protocol ? costs::toSetting(table.protocol).c_str() : nullptr);
    return links;
}

/// The mean of the absolute deviations of sizes from `low` up to `high`; "-" without any.
std::string meanText(const std::vector<Point>& points, const std::vector<double>& deviations, double low, double high) {
    double sum = 0, signedSum = 0, count = 0;
    for (size_t i = 0; i < points.size(); ++i)
        if (points[i].bytes >= low && points[i].bytes < high)
            sum += std::abs(deviations[i]), signedSum += deviations[i], ++count;
    return count > 0 ? fmt::format("{:.2f} ({:+.2f})", sum / count, signedSum / count) : "-";
}

void printDistribution(const char* name, const std::vector<double>& errors, double goal) {
    if (errors.empty()) return;
    const auto beyond = std::ranges::count_if(errors, [&](double error) { return error > goal; });
    fmt::print("{}: {} tables, median {:.3f}, p90 {:.3f}, {} above {:.2f}\n", name, errors.size(),
               facts::median(errors), facts::quantile(errors, 0.9), beyond, goal);
}

/// Predictions for the tables of a list, each with what is known of its machine.
int judge(const std::string& list) {
    constexpr double kSmall = 1 << 18, kLarge = 1 << 26;
    std::vector<double> near, far, nearReached, farReached;
    fmt::print(
        "| table | told | sizes | mean of abs ln(predicted / measured) | what is reached told | below 256 KiB (mean "
        "ln) | to 64 MiB | "
        "larger |\n| --- | --- | ---: | ---: | ---: | --- | --- | --- |\n");
    for (const ListedTable& listed : readTableList(list)) {
        std::vector<costs::NcclTestsTable> tables;
        try {
            tables = costs::readNcclTestsTables(listed.file, {listed.op, {}, {}});
        } catch (const store::Error& error) {
            fmt::print("refused: {}\n", error.cause());
            continue;
        }
        for (const costs::NcclTestsTable& table : tables) {
            const std::vector<Point> points = pointsOf(table);
            const auto function = functionOf(table.op);
            if (!function || points.empty()) continue;
            const Links links = linksOf(listed, table);
            const std::vector<double> deviations = links.deviations(*function, points);
            const double error = links.error(*function, points);
            (table.nodes > 1 ? far : near).push_back(error);
            const double reached =
                links.reachingWhat(*function, points.front(), points.back()).error(*function, points);
            (table.nodes > 1 ? farReached : nearReached).push_back(reached);
            fmt::print("| {}, {} of {} on {} | {} | {} | {:.3f} | {:.3f} | {} | {} | {} |\n",
                       fs::path(listed.file).stem().string(), store::toText(table.op), table.ranks, table.nodes,
                       listed.links, points.size(), error, reached, meanText(points, deviations, 0, kSmall),
                       meanText(points, deviations, kSmall, kLarge), meanText(points, deviations, kLarge, 1e18));
        }
    }
    printDistribution("one node", near, 0.2);
    printDistribution("several nodes", far, 0.4);
    printDistribution("one node, what is reached told", nearReached, 0.2);
    printDistribution("several nodes, what is reached told", farReached, 0.4);
    return 0;
}

}  // namespace
}  // namespace rankscope

int main(int count, char** arguments) {
    testing::InitGoogleTest(&count, arguments);
    return count > 1 ? rankscope::judge(arguments[1]) : RUN_ALL_TESTS();
}

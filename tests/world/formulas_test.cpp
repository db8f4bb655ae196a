// SPDX-License-Identifier: Apache-2.0
// Holds the error that prices by the formulas alone are given (costs::modelError) against published nccl-tests tables:
// told the makers' rates, of which the middle of what healthy links reach counts, and one latency, that of the smallest
// size, nine in ten sizes lie within it. Prints by size what reference/README.md has of it. An argument names a file of
// further tables (table_list.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/costs/most_share.h"
#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/costs/nccl_tests_table.h"
#include "analyzer/costs/reached_share.h"
#include "analyzer/costs/size_curve.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "collector/store/error.h"
#include "tests/world/table_list.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr int kSkipped = 77;  // as CTest is told
constexpr double kLeastInside = 0.9;
constexpr double kSmallest = 1024;  // bytes
/// Bounds of the rows that are printed, bytes.
constexpr std::array<double, 8> kBounds{1 << 10, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1e18};

struct Deviation {
    double bytes = 0;
    double ln = 0;  // of predicted over measured
    double error = 0;
    bool inside() const { return std::abs(ln) <= std::log1p(error); }
};

/// The deviations of single sizes, and by how much those of sizes kSmallestRange apart differ: of a time that is read
/// off another size's.
struct Deviations {
    std::vector<Deviation> ofSize, ofRatio;
};

costs::LinkModel linkOf(const ListedTable& listed, const facts::Communicator& group, store::Op op) {
    costs::LinkPeaks peaks = costs::parseLinkPeaks(listed.links);
    if (listed.pcie && peaks.intra) peaks.intra->medium = costs::LinkMedium::pcie;
    costs::LinkModel link = *costs::linkModel(peaks, group, op);
    const costs::LinkPeaks::Ceiling limit = *peaks.ceiling(group, op);
    costs::LinkClass nominal = *limit.link;
    nominal.kind = costs::PeakKind::deviceTable;
    nominal.medium = costs::mediumOf(nominal, limit.betweenNodes);
    const double share = costs::reachedShare(nominal, limit.betweenNodes).share.middle();
    link.bytesPerNs *= share;
    return link;
}

/// The latency with which the smallest size takes what it takes.
double latencyOf(costs::LinkModel link, store::Op op, int ranks, double bytes, double ns) {
    double low = 1, high = 1e7;
    for (int i = 0; i < 60; ++i) {
        link.alphaNs = std::sqrt(low * high);
        (costs::cheapestNs(link, op, ranks, bytes) < ns ? low : high) = link.alphaNs;
    }
    return low;
}

/// A peak that a table exceeds is refuted, and what rests on it is not used.
bool refutes(const costs::LinkPeaks& peaks, const facts::Communicator& group, const costs::NcclTestsTable& table) {
    const double ceiling = *costs::bestCeiling(peaks, group, table.op);
    return std::ranges::any_of(table.rows, [&](const costs::NcclTestsRow& row) {
        return static_cast<double>(row.bytes) * facts::busFactor(table.op, table.ranks) / (1000 * table.timeUs(row)) >
               costs::kRefuted * ceiling;
    });
}

void add(const ListedTable& listed, const costs::NcclTestsTable& table, Deviations& all) {
    facts::Communicator group;
    group.size = table.ranks;
    group.nodes = std::max(1, table.nodes);
    group.smallestNode = std::max(1, group.size / group.nodes);
    if (refutes(costs::parseLinkPeaks(listed.links), group, table)) {
        fmt::print("{} refutes what is told of its links\n", listed.file);
        return;
    }
    costs::LinkModel link = linkOf(listed, group, table.op);
    std::vector<Deviation> deviations;
    for (const costs::NcclTestsRow& row : table.rows) {
        const auto bytes = static_cast<double>(row.bytes);
        const double ns = 1000 * table.timeUs(row);
        if (bytes < kSmallest || ns <= 0) continue;
        if (deviations.empty()) link.alphaNs = latencyOf(link, table.op, table.ranks, bytes, ns);
        deviations.push_back({bytes, std::log(costs::cheapestNs(link, table.op, table.ranks, bytes) / ns),
                              costs::modelError(link, bytes)});
    }
    for (const Deviation& one : deviations) {
        all.ofSize.push_back(one);
        for (const Deviation& other : deviations)
            if (other.bytes == costs::SizeCurve::kSmallestRange * one.bytes)
                all.ofRatio.push_back({one.bytes, other.ln - one.ln, costs::sizeError(link, one.bytes)});
    }
}

std::string sizeText(double bytes) {
    return bytes >= 1 << 20 ? fmt::format("{:.0f} MiB", bytes / (1 << 20)) : fmt::format("{:.0f} KiB", bytes / 1024);
}

void print(const std::string& what, const std::vector<Deviation>& all) {
    for (size_t i = 0; i + 1 < kBounds.size(); ++i) {
        std::vector<double> errors;
        size_t inside = 0;
        for (const Deviation& one : all)
            if (one.bytes >= kBounds[i] && one.bytes < kBounds[i + 1]) {
                errors.push_back(std::abs(one.ln));
                inside += one.inside() ? 1 : 0;
            }
        if (errors.empty()) continue;
        fmt::print("| {} | {}{} | {} | {:.2f} | {:.2f} | {:.0f} % |\n", what, sizeText(kBounds[i]),
                   kBounds[i + 1] < 1e18 ? " to " + sizeText(kBounds[i + 1]) : " and more", errors.size(),
                   facts::median(errors), facts::quantile(errors, 0.9),
                   100.0 * static_cast<double>(inside) / static_cast<double>(errors.size()));
    }
}

int run(const char* list) {
    if (list == nullptr && !fs::exists(RANKSCOPE_RECORDED_TABLES)) {
        fmt::print("no published tables beside this source tree ({}): nothing to hold\n", RANKSCOPE_RECORDED_TABLES);
        return kSkipped;
    }
    Deviations near, far;
    for (const ListedTable& listed :
         list != nullptr ? readTableList(list) : recordedTables(RANKSCOPE_RECORDED_TABLES)) {
        std::vector<costs::NcclTestsTable> tables;
        try {
            tables = costs::readNcclTestsTables(listed.file, {listed.op, {}, {}});
        } catch (const store::Error& error) {
            fmt::print("refused: {}\n", error.cause());
            continue;
        }
        for (const costs::NcclTestsTable& table : tables) add(listed, table, table.nodes > 1 ? far : near);
    }
    const std::vector<std::pair<std::string, const std::vector<Deviation>*>> kinds{
        {"one node", &near.ofSize},
        {"several nodes", &far.ofSize},
        {"one node, against 4 times the size", &near.ofRatio},
        {"several nodes, against 4 times the size", &far.ofRatio}};
    fmt::print(
        "| tables of | size | sizes | abs ln(predicted / measured), median | p90 | within the quoted error |\n"
        "| --- | --- | ---: | ---: | ---: | ---: |\n");
    for (const auto& [what, all] : kinds) print(what, *all);
    int failed = 0;
    for (const auto& [what, all] : kinds) {
        // The recorded tables of several nodes refute the links that they are listed with; those of one node must be
        // read.
        if (all->empty() && (all == &far.ofSize || all == &far.ofRatio)) continue;
        const auto inside = std::ranges::count_if(*all, &Deviation::inside);
        const double share = all->empty() ? 0 : static_cast<double>(inside) / static_cast<double>(all->size());
        fmt::print("{}: {}, {:.0f} % of {} within the quoted error\n", share >= kLeastInside ? "holds" : "FAILS", what,
                   100 * share, all->size());
        failed += share >= kLeastInside ? 0 : 1;
    }
    return list != nullptr ? 0 : failed;
}

}  // namespace
}  // namespace rankscope

int main(int count, char** arguments) {
    return rankscope::run(count > 1 ? arguments[1] : nullptr);
}

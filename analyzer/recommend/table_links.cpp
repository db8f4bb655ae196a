// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/table_links.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::recommend {
namespace {

/// Rows from a quarter of the largest size on: three of a doubling sweep. One fast row is an accident, their median
/// none.
constexpr int64_t kPlateau = 4;

/// Bus bandwidth, bytes per ns; 0 where the table ends before the plateau can be one.
double plateauOf(const costs::NcclTestsTable& table) {
    constexpr int64_t kLarge =
        64 << 20;  // the superbench and EFA tables of nccl-tests are within a fifth of their end from there on
    const int64_t largest = std::max_element(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
                                return a.bytes < b.bytes;
                            })->bytes;
    if (largest < kLarge) return 0;
    std::vector<double> rates;
    for (const costs::NcclTestsRow& row : table.rows)
        if (row.bytes >= largest / kPlateau && table.timeUs(row) > 0)
            rates.push_back(static_cast<double>(row.bytes) * facts::busFactor(table.op, table.ranks) /
                            (1000 * table.timeUs(row)));
    return rates.empty() ? 0 : facts::median(std::move(rates));
}

void keepFaster(const costs::LinkClass& link, std::optional<costs::LinkClass>& kept) {
    if (link.bytesPerNs > 0 && (!kept || link.bytesPerNs > kept->bytesPerNs)) kept = link;
}

}  // namespace

void addMeasuredLinks(const std::vector<costs::NcclTestsTable>& tables, costs::LinkSources& sources) {
    for (const costs::NcclTestsTable& table : tables) {
        if (table.rows.empty() || table.ranks < 2) continue;
        const double busbw = plateauOf(table);
        const std::string source =
            fmt::format("nccl-tests, {} of {} ranks on {} node{}, {} line {}", store::toText(table.op), table.ranks,
                        std::max(1, table.nodes), table.nodes > 1 ? "s" : "", table.file, table.line);
        if (table.nodes <= 1) {
            keepFaster({busbw, 0, costs::PeakKind::measured, source}, sources.measuredIntra);
            continue;
        }
        const double perNode = std::max(1.0, static_cast<double>(table.ranks) / table.nodes);
        // An all-to-all sends what leaves the node through each rank's own card; a ring goes through all cards of a
        // node.
        const double perRank =
            table.op == store::Op::allToAll ? busbw * (table.ranks - perNode) / (table.ranks - 1) : busbw / perNode;
        keepFaster({perRank, 0, costs::PeakKind::measured, source}, sources.measuredInter);
    }
}

}  // namespace rankscope::recommend

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/measured_links.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/costs/most_share.h"
#include "analyzer/costs/table_trust.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::costs {
namespace {

/// Rows from a quarter of the largest size on: three of a doubling sweep. One fast row is an accident, their median
/// none.
constexpr int64_t kPlateauPart = 4;

/// The superbench and EFA tables of nccl-tests are within a fifth of their end from there on.
constexpr int64_t kPlateauBytes = 64 << 20;

int64_t largestOf(const NcclTestsTable& table) {
    return std::ranges::max_element(table.rows, {}, &NcclTestsRow::bytes)->bytes;
}

/// Returns the bus bandwidth, bytes per ns.
double plateauOf(const NcclTestsTable& table) {
    const int64_t largest = largestOf(table);
    std::vector<double> rates;
    for (const NcclTestsRow& row : table.rows)
        if (row.bytes >= largest / kPlateauPart && table.timeUs(row) > 0)
            rates.push_back(static_cast<double>(row.bytes) * facts::busFactor(table.op, table.ranks) /
                            (1000 * table.timeUs(row)));
    return rates.empty() ? 0 : facts::median(std::move(rates));
}

/// Returns a rank's part of the bus bandwidth: its port's, or its card's.
double rankShare(const NcclTestsTable& table) {
    if (table.nodes <= 1) return 1;
    facts::Communicator group;
    group.size = table.ranks;
    group.nodes = table.nodes;
    group.smallestNode = std::max(1, table.ranks / table.nodes);
    return 1 / nicsPerRank(group, table.op);
}

std::string noPeak(const NcclTestsTable& table, int line, const std::string& why) {
    return fmt::format("{} line {} tells no peak of the links: {}", table.file, line, why);
}

}  // namespace

void addMeasuredLinks(const std::vector<NcclTestsTable>& tables, const facts::TraceFacts& facts, LinkSources& sources) {
    const TrustedTables trusted = trustedTables(tables, {}, facts);
    for (const TableNote& note : trusted.setAside)
        sources.complaints.push_back(
            fmt::format("{} line {} tells no peak of the links: {}", note.file, note.line, note.text));
    for (const NcclTestsTable& table : trusted.tables) {
        if (table.rows.empty() || table.ranks < 2) continue;
        const int64_t largest = largestOf(table);
        if (largest < kPlateauBytes) {
            sources.complaints.push_back(noPeak(table, table.line,
                                                fmt::format("it ends at {}, and what links carry shows from {} on",
                                                            text::bytesText(static_cast<double>(largest)),
                                                            text::bytesText(static_cast<double>(kPlateauBytes)))));
            continue;
        }
        const double rate = rankShare(table) * plateauOf(table);
        if (!(rate > 0)) continue;
        if (table.cutLine > 0)
            sources.complaints.push_back(fmt::format("{} line {}: {}", table.file, table.cutLine, cutText(table)));
        facts::Communicator group;
        group.size = table.ranks;
        group.nodes = std::max(1, table.nodes);
        const std::string source =
            fmt::format("nccl-tests, {} of {} ranks on {}, to {}, {} line {}", store::toText(table.op), table.ranks,
                        text::countedText(group.nodes, "node"), text::bytesText(static_cast<double>(largest)),
                        table.file, table.line);
        const double most = mostShare(linkOfRate(group, rate, 0), table.op, {table.algorithm, store::Protocol::simple});
        sources.measured.push_back({{rate, 0, PeakKind::measured, source}, group.nodes > 1, most});
    }
}

}  // namespace rankscope::costs

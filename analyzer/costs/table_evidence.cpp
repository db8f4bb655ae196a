// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/table_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/costs/cost_fit.h"
#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::costs {
namespace {

/// Where one thread starts the kernels of four and more GPUs the published floors are 3.3 to 8.2 us for each, 10.9 in
/// an all-to-all, whatever the GPUs and their links; beyond it is the links'. Of two GPUs a process for each takes as
/// long (V100 over PCIe: 11.1 against 10.6 us).
constexpr Range kLaunchNs{3'000, 12'000};
constexpr int kFewestGpus = 4;
constexpr double kFlat = 1.1;      // twice the error of a row
constexpr double kFlatRange = 8;   // a floor holds over three doublings, else it is a start-up like any other
constexpr size_t kFloorRows = 3;   // whose median is the floor
constexpr double kByChance = 0.1;  // of the sizes: twice as many as lie beyond an error of 95 %

bool sameSetting(const NcclTestsTable& a, const NcclTestsTable& b) {
    return a.op == b.op && a.ranks == b.ranks && a.nodes == b.nodes && a.algorithm == b.algorithm &&
           a.protocol == b.protocol && a.severalChoices == b.severalChoices && a.noSuchChoice == b.noSuchChoice;
}

TableNote contradiction(const NcclTestsTable& of, const NcclTestsTable& by, const SizedTime& mine,
                        const SizedTime& theirs, const TableComparison& compared) {
    return {
        TableNote::Kind::contradicted, of.file, of.line,
        fmt::format("{} line {} says something else of the same: {} of {} sizes differ by more than their errors, {} "
                    "takes {} here and {} there. Neither counts more: what rests on them reaches from the one to "
                    "the other",
                    by.file, by.line, compared.beyond, compared.shared, text::bytesText(mine.bytes),
                    text::durationText(mine.ns), text::durationText(theirs.ns))};
}

}  // namespace

const char* toText(TableNote::Kind kind) {
    switch (kind) {
        case TableNote::Kind::kink:
            return "kink";
        case TableNote::Kind::contradicted:
            return "contradicted";
        case TableNote::Kind::impossible:
            return "impossible";
        case TableNote::Kind::inconsistent:
            return "inconsistent";
        case TableNote::Kind::cut:
            return "cut";
        case TableNote::Kind::links:
            return "links";
        case TableNote::Kind::hostBound:
            return "host_bound";
        case TableNote::Kind::otherVersion:
            return "other_version";
        case TableNote::Kind::notUsed:
            break;
    }
    return "not_used";
}

std::vector<SizedTime> sizedTimes(const NcclTestsTable& table) {
    std::vector<SizedTime> times;
    for (const NcclTestsRow& row : table.rows)
        if (row.bytes > 0 && table.timeUs(row) > 0)
            times.push_back({static_cast<double>(row.bytes), 1000 * table.timeUs(row), CostLine::kError});
    return times;
}

double hostBoundBytes(const NcclTestsTable& table) {
    const std::vector<SizedTime> times = sizedTimes(table);
    if (table.gpusPerThread < kFewestGpus || times.size() <= kFloorRows) return 0;
    std::vector<double> first;
    for (size_t i = 0; i < kFloorRows; ++i) first.push_back(times[i].ns);
    const double floorNs = facts::median(first);
    const double perGpuNs = floorNs / table.gpusPerThread;
    if (perGpuNs < kLaunchNs.low || perGpuNs > kLaunchNs.high) return 0;
    double last = 0;
    size_t slower = 0;  // in a row
    for (const SizedTime& time : times) {
        slower = time.ns <= kFlat * floorNs ? 0 : slower + 1;
        if (slower > 1) break;  // one disturbed size does not end the floor
        if (slower == 0) last = time.bytes;
    }
    return last >= kFlatRange * times.front().bytes ? last : 0;
}

std::vector<SizedTime> linkTimes(const NcclTestsTable& table) {
    std::vector<SizedTime> times = sizedTimes(table);
    const double hosts = hostBoundBytes(table);
    std::erase_if(times, [&](const SizedTime& time) { return time.bytes <= hosts; });
    return times;
}

bool isOtherVersion(const NcclTestsTable& table, const std::optional<NcclVersion>& version) {
    const auto measured = parseNcclVersion(table.ncclVersion);
    if (!measured || !version) return false;
    if (version->orNewer) return !measured->atLeast(version->major, version->minor);
    return measured->major != version->major || measured->minor != version->minor;
}

std::string cutText(const NcclTestsTable& table) {
    return fmt::format("the file ends inside the table of line {}: what stands above is used, {} sizes to {}",
                       table.line, table.rows.size(),
                       text::bytesText(table.rows.empty() ? 0 : static_cast<double>(table.rows.back().bytes)));
}

TableComparison compareTimes(const std::vector<SizedTime>& mine, const std::vector<SizedTime>& theirs) {
    TableComparison result;
    double worst = -1;
    for (const SizedTime& one : mine) {
        const auto same = std::ranges::find(theirs, one.bytes, &SizedTime::bytes);
        if (same == theirs.end()) continue;
        const double off = std::abs(std::log(one.ns / same->ns));
        ++result.shared;
        result.beyond += off > std::log1p(std::hypot(one.error, same->error)) ? 1 : 0;
        result.far += off > std::log(SizeCurve::kKink) ? 1 : 0;
        if (off > worst) worst = off, result.mine = one, result.theirs = *same;
    }
    return result;
}

std::vector<TableNote> contradictions(const std::vector<NcclTestsTable>& tables) {
    std::vector<TableNote> notes;
    std::vector<std::vector<SizedTime>> times;
    for (const NcclTestsTable& table : tables) times.push_back(linkTimes(table));
    for (size_t a = 0; a < tables.size(); ++a)
        for (size_t b = a + 1; b < tables.size(); ++b) {
            if (!sameSetting(tables[a], tables[b])) continue;
            const TableComparison one = compareTimes(times[a], times[b]);
            if (static_cast<double>(one.beyond) <= kByChance * static_cast<double>(one.shared) && one.far == 0)
                continue;
            notes.push_back(contradiction(tables[a], tables[b], one.mine, one.theirs, one));
            notes.push_back(contradiction(tables[b], tables[a], one.theirs, one.mine, one));
        }
    return notes;
}

}  // namespace rankscope::costs

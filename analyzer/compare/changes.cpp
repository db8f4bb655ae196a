// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/changes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

/// Matches what the sides have by key: a row for each key of either side, which `fill` describes by an entry, of the
/// new side where it has one. Largest `size` first.
template <typename Row, typename Entries, typename Fill, typename Size>
std::vector<Row> matched(const Entries& base, const Entries& now, Fill&& fill, Size&& size) {
    std::map<typename Entries::key_type, Row> rows;
    for (const auto& [key, entry] : base) fill(entry, rows[key]).base = entry;
    for (const auto& [key, entry] : now) fill(entry, rows[key]).now = entry;
    std::vector<Row> sorted;
    for (auto& [key, row] : rows) sorted.push_back(std::move(row));
    std::ranges::stable_sort(sorted, std::greater{}, size);
    return sorted;
}

bool isOn(int runs, const SideMeans& side) {
    return runs > 0 && 2 * static_cast<size_t>(runs) >= side.runs;
}

FindingStatus statusOf(const FindingMeans& before, const FindingMeans& after, const SideMeans& base,
                       const SideMeans& now) {
    if (base.runs == 0) return FindingStatus::present;
    // Verdicts go by savings where repairs could be played: of one side's saving and the other's cost none is compared.
    const bool bySaving = FindingChange::bySaving(before.side, after.side);
    const bool onBase = isOn(bySaving ? before.side.runs : before.runsByCost, base),
               onNow = isOn(bySaving ? after.side.runs : after.runsByCost, now);
    if (!onBase && !onNow) return FindingStatus::present;
    const auto &was = bySaving ? before.side.savingNs : before.side.costNs,
               &is = bySaving ? after.side.savingNs : after.side.costNs;
    if (!was || !is || (*was == 0 && *is == 0))  // its presence alone tells
        return onBase == onNow ? FindingStatus::same : onNow ? FindingStatus::isNew : FindingStatus::gone;
    const bool other = std::abs(*is - *was) > kOtherCost * std::max(*was, *is) &&
                       std::abs(*is / now.meanStepNs - *was / base.meanStepNs) > kOtherStepShare;
    if (!other) return FindingStatus::same;
    if (onBase != onNow) return onNow ? FindingStatus::isNew : FindingStatus::gone;
    return *is > *was ? FindingStatus::worse : FindingStatus::better;
}

/// The key by which the base has a finding of the new side: its own, or where it has none by that, one of the same
/// place that may be the same, and that the new side does not have.
FindingKey likeIn(const SideMeans& base, const SideMeans& now, const FindingKey& key, const FindingMeans& finding) {
    if (base.findings.contains(key)) return key;
    for (const auto& [other, known] : base.findings)
        if (other.second == key.second && !now.findings.contains(other) && mayBeOne(known.example, finding.example))
            return other;
    return key;
}

}  // namespace

std::vector<CollectiveChange> compareCollectives(const SideMeans& base, const SideMeans& now) {
    const auto fill = [](const TrafficSummary& traffic, CollectiveChange& row) -> CollectiveChange& {
        row.role = traffic.use;
        row.op = traffic.op;
        row.ranks = traffic.ranks;
        row.sizeClass = text::sizeClassText(traffic.sizeClass);
        return row;
    };
    const auto timeOf = [](const std::optional<TrafficSummary>& side) {
        return side ? side->transferNs + side->waitNs : 0;
    };
    return matched<CollectiveChange>(base.traffic, now.traffic, fill, [&](const CollectiveChange& row) {
        return std::max(timeOf(row.base), timeOf(row.now));
    });
}

std::vector<KernelChange> compareKernels(const SideMeans& base, const SideMeans& now) {
    const auto fill = [&](const KernelSummary& kernel, KernelChange& row) -> KernelChange& {
        row.name = kernel.name;
        row.deltaNs = text::valueAt(now.kernels, row.name).ns - text::valueAt(base.kernels, row.name).ns;
        return row;
    };
    return matched<KernelChange>(base.kernels, now.kernels, fill,
                                 [](const KernelChange& row) { return std::abs(row.deltaNs); });
}

std::vector<BreakdownChange> compareBreakdowns(const SideMeans& base, const SideMeans& now) {
    const auto fill = [](const RoleSummary& role, BreakdownChange& row) -> BreakdownChange& {
        row.role = role.role;
        row.rank = role.rank;
        return row;
    };
    return matched<BreakdownChange>(base.roles, now.roles, fill, [](const BreakdownChange& row) { return -row.rank; });
}

std::vector<FindingChange> compareFindings(const SideMeans& base, const SideMeans& now) {
    std::map<FindingKey, std::pair<FindingMeans, FindingMeans>> both;
    for (const auto& [key, finding] : base.findings) both[key].first = finding;
    for (const auto& [key, finding] : now.findings) both[likeIn(base, now, key, finding)].second = finding;
    std::vector<FindingChange> rows;
    for (const auto& [key, sides] : both) {
        const auto& [before, after] = sides;
        if (after.side.runs == 0 && !isOn(before.side.runs, base)) continue;
        const FindingSummary& example = after.side.isThere ? after.example : before.example;
        FindingChange row;
        row.status = statusOf(before, after, base, now);
        row.id = example.id;
        row.alternatives = example.alternatives;
        row.knownAs = key.first;
        row.title = example.title;
        // What only the base has is on its ranks: the new side may know these roles by other ones, or not at all.
        row.where = placeText(after.side.isThere ? now : base, key.second, row.ranks);
        row.ranks = example.ranks;
        row.cause = example.cause;
        row.fix = example.fix;
        row.base = before.side;
        row.now = after.side;
        row.base.ofRuns = static_cast<int>(base.runs);
        row.now.ofRuns = static_cast<int>(now.runs);
        rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(rows, {}, [](const FindingChange& row) {
        const double worthNs = std::max(row.worthNs(row.now).value_or(0), row.worthNs(row.base).value_or(0));
        return std::pair(row.status, -worthNs);
    });
    return rows;
}

}  // namespace rankscope::compare

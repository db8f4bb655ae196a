// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/changes.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

CollectiveSide sideOf(const TrafficSummary& row) {
    CollectiveSide side;
    side.count = row.count;
    if (row.bytes > 0) side.bytes = row.bytes;
    side.transferNs = row.transferNs;
    side.waitNs = row.waitNs;
    if (row.busbw > 0) side.busbw = row.busbw;
    side.algorithm = row.algorithm;
    side.protocol = row.protocol;
    return side;
}

double timeOf(const std::optional<CollectiveSide>& side) {
    return side ? side->transferNs.value_or(0) + side->waitNs : 0;
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

int order(FindingStatus status) {
    constexpr FindingStatus kOrder[] = {FindingStatus::isNew,  FindingStatus::worse,   FindingStatus::gone,
                                        FindingStatus::better, FindingStatus::present, FindingStatus::same};
    return static_cast<int>(std::ranges::find(kOrder, status) - std::begin(kOrder));
}

}  // namespace

std::vector<CollectiveChange> compareCollectives(const SideMeans& base, const SideMeans& now) {
    std::map<TrafficKey, CollectiveChange> rows;
    const auto gather = [&](const SideMeans& side, std::optional<CollectiveSide> CollectiveChange::*part) {
        for (const auto& [key, traffic] : side.traffic) {
            CollectiveChange& row = rows[key];
            row.role = traffic.use;
            row.op = traffic.op;
            row.ranks = traffic.ranks;
            row.sizeClass = text::sizeClassText(traffic.sizeClass);
            row.*part = sideOf(traffic);
        }
    };
    gather(base, &CollectiveChange::base);
    gather(now, &CollectiveChange::now);
    std::vector<CollectiveChange> sorted;
    for (auto& [key, row] : rows) sorted.push_back(std::move(row));
    std::ranges::stable_sort(sorted, [](const CollectiveChange& a, const CollectiveChange& b) {
        return std::max(timeOf(a.base), timeOf(a.now)) > std::max(timeOf(b.base), timeOf(b.now));
    });
    return sorted;
}

std::vector<KernelChange> compareKernels(const SideMeans& base, const SideMeans& now) {
    std::map<std::string, KernelChange> rows;
    for (const auto& [name, kernel] : base.kernels) rows[name].base = KernelSide{kernel.count, kernel.ns};
    for (const auto& [name, kernel] : now.kernels) rows[name].now = KernelSide{kernel.count, kernel.ns};
    std::vector<KernelChange> sorted;
    for (auto& [name, row] : rows) {
        row.name = name;
        row.deltaNs = (row.now ? row.now->ns : 0) - (row.base ? row.base->ns : 0);
        sorted.push_back(std::move(row));
    }
    std::ranges::stable_sort(
        sorted, [](const KernelChange& a, const KernelChange& b) { return std::abs(a.deltaNs) > std::abs(b.deltaNs); });
    return sorted;
}

std::vector<BreakdownChange> compareBreakdowns(const SideMeans& base, const SideMeans& now) {
    std::map<std::string, BreakdownChange> byRole;
    const auto take = [&](const SideMeans& side, std::optional<BreakdownSide> BreakdownChange::*part) {
        for (const auto& [name, role] : side.roles) {
            BreakdownChange& row = byRole[name];
            row.role = name;
            row.rank = role.rank;
            row.*part = role;
        }
    };
    take(base, &BreakdownChange::base);
    take(now, &BreakdownChange::now);
    std::vector<BreakdownChange> rows;
    for (auto& [name, row] : byRole) rows.push_back(std::move(row));
    std::ranges::stable_sort(rows, {}, &BreakdownChange::rank);
    return rows;
}

std::vector<FindingChange> compareFindings(const SideMeans& base, const SideMeans& now) {
    std::map<FindingKey, std::pair<FindingMeans, FindingMeans>> both;
    for (const auto& [key, finding] : base.findings) both[key].first = finding;
    for (const auto& [key, finding] : now.findings) both[key].second = finding;
    std::vector<FindingChange> rows;
    for (const auto& [key, sides] : both) {
        const auto& [before, after] = sides;
        if (after.side.runs == 0 && !isOn(before.side.runs, base)) continue;
        const FindingSummary& example = after.side.isThere ? after.example : before.example;
        FindingChange row;
        row.status = statusOf(before, after, base, now);
        row.id = example.id;
        row.title = example.title;
        row.where = placeText(now, key.second, row.ranks);
        row.ranks = example.ranks;
        row.cause = example.cause;
        row.fix = example.fix;
        row.base = before.side;
        row.now = after.side;
        row.base.ofRuns = static_cast<int>(base.runs);
        row.now.ofRuns = static_cast<int>(now.runs);
        rows.push_back(std::move(row));
    }
    const auto worth = [](const FindingChange& row) {
        return std::max(row.worthNs(row.now).value_or(0), row.worthNs(row.base).value_or(0));
    };
    std::ranges::stable_sort(rows, [&](const FindingChange& a, const FindingChange& b) {
        return order(a.status) != order(b.status) ? order(a.status) < order(b.status) : worth(a) > worth(b);
    });
    return rows;
}

}  // namespace rankscope::compare

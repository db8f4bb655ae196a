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

BreakdownSide sideOf(const RoleSummary& role) {
    return {role.stepNs,   role.computeNs, role.overlappedCommNs, role.exposedTransferNs, role.exposedWaitNs,
            role.memoryNs, role.idleNs};
}

using Key = std::pair<std::string, std::vector<std::string>>;  // diagnosis, roles

/// Sums up one finding on one side.
struct OnSide {
    int runs = 0;  // that have it as a finding
    // Summed over all runs that have it, notes and inconclusive ones included: what was only surer is not new.
    double costNs = 0;
    double share = 0;  // the same as a share of the step
    const FindingSummary* example = nullptr;
};

std::map<Key, OnSide> gather(const std::vector<RunSummary>& runs) {
    std::map<Key, OnSide> all;
    for (const RunSummary& run : runs) {
        for (const FindingSummary& finding : run.findings) {
            std::vector<std::string> roles = finding.roles;
            std::ranges::sort(roles);
            OnSide& side = all[{finding.id, roles}];
            side.runs += finding.verdict == "found";
            side.costNs += finding.costNs.value_or(0);
            side.share += finding.costNs ? finding.severity : 0;
            if (!side.example || (side.example->verdict != "found" && finding.verdict == "found"))
                side.example = &finding;
        }
    }
    return all;
}

bool isOn(const OnSide& side, size_t runs) {
    return side.runs > 0 && 2 * static_cast<size_t>(side.runs) >= runs;
}

FindingStatus statusOf(const OnSide& base, const OnSide& now, size_t baseRuns, size_t nowRuns) {
    if (baseRuns == 0) return FindingStatus::present;
    const double before = base.costNs / static_cast<double>(baseRuns),
                 after = now.costNs / static_cast<double>(nowRuns);
    const double stepShare =
        std::abs(now.share / static_cast<double>(nowRuns) - base.share / static_cast<double>(baseRuns));
    const bool other = std::abs(after - before) > kOtherCost * std::max(before, after) && stepShare > kOtherStepShare;
    const bool onBase = isOn(base, baseRuns), onNow = isOn(now, nowRuns);
    if (!onBase && !onNow) return FindingStatus::present;
    const bool unknownCost = before == 0 && after == 0;  // the diagnosis is not one of cost
    if (onBase != onNow && (other || unknownCost)) return onNow ? FindingStatus::isNew : FindingStatus::gone;
    if (!other) return FindingStatus::same;
    return after > before ? FindingStatus::worse : FindingStatus::better;
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
            row.*part = sideOf(role);
        }
    };
    take(base, &BreakdownChange::base);
    take(now, &BreakdownChange::now);
    std::vector<BreakdownChange> rows;
    for (auto& [name, row] : byRole) rows.push_back(std::move(row));
    std::ranges::stable_sort(rows, {}, &BreakdownChange::rank);
    return rows;
}

std::vector<FindingChange> compareFindings(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                           const SideMeans& nowMeans) {
    std::map<Key, OnSide> before = gather(base), after = gather(now);
    for (const auto& [key, side] : before) after.try_emplace(key);
    std::vector<FindingChange> rows;
    for (const auto& [key, side] : after) {
        const OnSide& other = before[key];
        if (side.runs == 0 && !isOn(other, base.size())) continue;
        const FindingSummary& example = side.example ? *side.example : *other.example;
        FindingChange row;
        row.status = statusOf(other, side, base.size(), now.size());
        row.id = example.id;
        row.title = example.title;
        row.where = placeText(nowMeans, key.second, row.ranks);
        row.ranks = example.ranks;
        row.cause = example.cause;
        row.fix = example.fix;
        if (other.costNs > 0) row.baseCostNs = other.costNs / static_cast<double>(base.size());
        if (side.costNs > 0) row.newCostNs = side.costNs / static_cast<double>(now.size());
        row.baseRuns = other.runs;
        row.newRuns = side.runs;
        row.ofBaseRuns = static_cast<int>(base.size());
        row.ofNewRuns = static_cast<int>(now.size());
        rows.push_back(std::move(row));
    }
    const auto cost = [](const FindingChange& row) {
        return std::max(row.newCostNs.value_or(0), row.baseCostNs.value_or(0));
    };
    std::ranges::stable_sort(rows, [&](const FindingChange& a, const FindingChange& b) {
        return order(a.status) != order(b.status) ? order(a.status) < order(b.status) : cost(a) > cost(b);
    });
    return rows;
}

}  // namespace rankscope::compare

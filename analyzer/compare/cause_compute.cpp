// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/cause_compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analyzer/compare/attribution_changes.h"
#include "analyzer/compare/cause_text.h"
#include "analyzer/report/units.h"

namespace rankscope::analyzer {
namespace {

constexpr double kWorkIsWhy = 0.5;       // of the growth in time that growth in work must explain to be its reason
constexpr double kGrew = 0.001;          // of compute: no machine repeats a run better than that (kNoiseFloor), so less is no growth
constexpr double kContentionIsWhy = 0.5; // of the growth that communication beside kernels must explain

/// Sums over ranks that have their like on the other side.
struct Growth {
    double baseNs = 0, newNs = 0, slowedNs = 0;
    double members = 0;
    double kernelNs = 0, priceNs = 0;  // kernels of the base, and what the new side's work would take at the base's speed

    double time() const { return baseNs > 0 ? newNs / baseNs - 1 : 0; }
    double work() const { return kernelNs > 0 ? priceNs / kernelNs - 1 : 0; }
};

/// Prices the new side's kernels at the base's time per thread block.
void addWork(const RoleSummary& before, const RoleSummary& after, Growth& growth) {
    for (const auto& [name, work] : before.work) {
        growth.kernelNs += work.ns;
        const auto now = after.work.find(name);
        if (now == after.work.end()) continue;
        growth.priceNs += work.blocks > 0 && now->second.blocks > 0 ? work.ns * now->second.blocks / work.blocks : work.ns;
    }
    for (const auto& [name, work] : after.work)
        if (before.work.count(name) == 0) growth.priceNs += work.ns;
}

/// All ranks of a side as one: what is left to compare where no rank of one side has its like on the other.
RoleSummary meanRole(const SideMeans& side) {
    RoleSummary mean;
    const double share = 1 / static_cast<double>(std::max<size_t>(1, side.roles.size()));
    for (const auto& [name, role] : side.roles) {
        mean.computeNs += share * role.computeNs;
        mean.slowedNs += share * role.slowedNs;
        for (const auto& [kernel, work] : role.work) {
            mean.work[kernel].ns += share * work.ns;
            mean.work[kernel].blocks += share * work.blocks;
        }
    }
    return mean;
}

void addRole(const RoleSummary& before, const RoleSummary& after, Growth& growth) {
    ++growth.members;
    growth.baseNs += before.computeNs;
    growth.newNs += after.computeNs;
    growth.slowedNs += after.slowedNs - before.slowedNs;
    addWork(before, after, growth);
}

/// Over `roles`; over all that both sides have when it is empty.
Growth growthOf(const SideMeans& base, const SideMeans& now, const std::vector<std::string>& roles) {
    Growth growth;
    for (const auto& [name, after] : now.roles) {
        const auto before = base.roles.find(name);
        if (before == base.roles.end() || (!roles.empty() && std::find(roles.begin(), roles.end(), name) == roles.end())) continue;
        addRole(before->second, after, growth);
    }
    if (growth.members == 0) addRole(meanRole(base), meanRole(now), growth);
    return growth;
}

template <typename Value>
bool isAllOf(const SideMeans& side, const std::vector<std::string>& roles, Value RoleSummary::*part) {
    if (roles.empty()) return false;
    const Value& first = side.roles.at(roles.front()).*part;
    const auto same = [&](const std::string& name) { return side.roles.at(name).*part == first; };
    const auto members = std::count_if(side.roles.begin(), side.roles.end(), [&](const auto& role) { return role.second.*part == first; });
    return std::all_of(roles.begin(), roles.end(), same) && members == static_cast<long>(roles.size()) && roles.size() < side.roles.size();
}

}  // namespace

ChangeCause computeCause(const SideMeans& base, const SideMeans& now, double ns, bool reversed) {
    ChangeCause cause;
    cause.ns = ns;
    cause.kind = "unknown";
    const std::vector<std::string> roles = rolesThatGrew(base, now, &RoleSummary::computeNs);
    cause.where = placeText(now, roles, cause.ranks);
    const Growth growth = growthOf(base, now, roles);
    if (growth.time() < kGrew) return cause;
    cause.evidence.push_back(fmt::format("compute of {}: {} a step ({})", cause.where,
                                         fromTo(durationText(growth.baseNs / growth.members), durationText(growth.newNs / growth.members), reversed),
                                         timeGrowthText(fromBase(growth.time(), reversed))));
    const bool wholeStage = isAllOf(now, roles, &RoleSummary::stage) && now.roles.at(roles.front()).stage >= 0;
    if (growth.work() > kWorkIsWhy * growth.time()) {
        cause.evidence.push_back(fmt::format("at the {} side's speed the {} side's work would take {}", reversed ? "new" : "base", reversed ? "base" : "new", longerText(growth.work())));
        cause.kind = roles.empty() ? "more_work" : wholeStage ? "stage_imbalance" : "uneven_work";
        cause.diagnosis = roles.empty() ? "" : wholeStage ? "RS102" : "RS304";
        cause.text = fmt::format("{} compute{} more: {}", cause.where, cause.ranks.size() == 1 ? "s" : "", amountGrowthText(growth.work(), "work"));
        return cause;
    }
    if (growth.slowedNs > kContentionIsWhy * (growth.newNs - growth.baseNs)) {
        cause.kind = "contention";
        cause.diagnosis = "RS209";
        cause.text = fmt::format("communication slows the compute beside it, on {}", cause.where);
        return cause;
    }
    const bool wholeHost = roles.size() > 1 && isAllOf(now, roles, &RoleSummary::host);
    cause.kind = roles.empty() ? "slower_compute" : wholeHost ? "slow_node" : "straggler";
    cause.diagnosis = roles.empty() ? "" : wholeHost ? "RS302" : "RS301";
    cause.text = fmt::format("the same kernels are slower on {}: {}", cause.where, timeGrowthText(growth.time()));
    return cause;
}

}  // namespace rankscope::analyzer

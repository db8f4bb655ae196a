// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/cause_compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analyzer/compare/attribution_changes.h"
#include "analyzer/report/units.h"

namespace rankscope::analyzer {
namespace {

constexpr double kWorkIsWhy = 0.5;       // of the growth in time that growth in work must explain to be its reason
constexpr double kContentionIsWhy = 0.5; // of the growth that communication beside kernels must explain

/// Sums over some roles; all of them when `roles` is empty.
struct Growth {
    double baseNs = 0, newNs = 0, slowedNs = 0;
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

Growth growthOf(const SideMeans& base, const SideMeans& now, const std::vector<std::string>& roles) {
    Growth growth;
    for (const auto& [name, after] : now.roles) {
        const auto before = base.roles.find(name);
        if (before == base.roles.end() || (!roles.empty() && std::find(roles.begin(), roles.end(), name) == roles.end())) continue;
        growth.baseNs += before->second.computeNs;
        growth.newNs += after.computeNs;
        addWork(before->second, after, growth);
        growth.slowedNs += after.slowedNs - before->second.slowedNs;
    }
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

std::string percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

}  // namespace

ChangeCause computeCause(const SideMeans& base, const SideMeans& now, double ns) {
    ChangeCause cause;
    cause.ns = ns;
    const std::vector<std::string> roles = rolesThatGrew(base, now, &RoleSummary::computeNs);
    cause.where = placeText(now, roles, cause.ranks);
    const Growth growth = growthOf(base, now, roles);
    cause.evidence.push_back(fmt::format("compute of {}: {} -> {} a step ({})", cause.where, durationText(growth.baseNs / static_cast<double>(std::max<size_t>(1, roles.empty() ? now.roles.size() : roles.size()))),
                                         durationText(growth.newNs / static_cast<double>(std::max<size_t>(1, roles.empty() ? now.roles.size() : roles.size()))), percent(growth.time())));
    const bool wholeStage = isAllOf(now, roles, &RoleSummary::stage) && now.roles.at(roles.front()).stage >= 0;
    if (growth.time() > 0 && growth.work() > kWorkIsWhy * growth.time()) {
        cause.evidence.push_back(fmt::format("at the base's speed their work would take {}", percent(growth.work())));
        cause.kind = roles.empty() ? "more_work" : wholeStage ? "stage_imbalance" : "uneven_work";
        cause.diagnosis = roles.empty() ? "" : wholeStage ? "RS102" : "RS304";
        cause.text = fmt::format("{} compute{} more: {} of work", cause.where, cause.ranks.size() == 1 ? "s" : "", percent(growth.work()));
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
    cause.text = fmt::format("the same kernels are slower on {}: {}", cause.where, percent(growth.time()));
    return cause;
}

}  // namespace rankscope::analyzer

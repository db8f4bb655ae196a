// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/cause_compute.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/compare/attribution_changes.h"
#include "analyzer/compare/cause_text.h"
#include "analyzer/compare/compute_growth.h"
#include "analyzer/report/units.h"

namespace rankscope::analyzer {
namespace {

constexpr double kIsWhy = 0.5;   // of the growth in time that work, other kernels or communication must explain to be its reason
constexpr double kGrew = 0.001;  // of compute: no machine repeats a run better than that (kNoiseFloor), so less is no growth

template <typename Value>
bool isAllOf(const SideMeans& side, const std::vector<std::string>& roles, Value RoleSummary::*part) {
    if (roles.empty()) return false;
    const Value& first = side.roles.at(roles.front()).*part;
    const auto same = [&](const std::string& name) { return side.roles.at(name).*part == first; };
    const auto members = std::count_if(side.roles.begin(), side.roles.end(), [&](const auto& role) { return role.second.*part == first; });
    return std::all_of(roles.begin(), roles.end(), same) && members == static_cast<long>(roles.size()) && roles.size() < side.roles.size();
}

/// Ranks beside `roles`.
std::vector<std::string> others(const SideMeans& side, const std::vector<std::string>& roles) {
    std::vector<std::string> names;
    for (const auto& [name, role] : side.roles)
        if (std::find(roles.begin(), roles.end(), name) == roles.end()) names.push_back(name);
    return names;
}

/// Kernels gave way to others that take longer. Where the ranks beside them, which take no longer, have the others too, these are not why.
bool explainedByOtherKernels(const ComputeGrowth& growth, const SideMeans& base, const SideMeans& now, const std::vector<std::string>& roles, bool reversed, ChangeCause& cause) {
    if (!growth.replaced() || growth.addedNs - growth.goneNs <= kIsWhy * growth.ns()) return false;
    if (!roles.empty() && growthOf(base, now, others(now, roles)).replaced()) return false;
    cause.kind = "other_kernels";
    cause.text = fmt::format("other kernels run on {}, {} in place of {}: {}", cause.where, growth.added, growth.gone, timeGrowthText(growth.time()));
    cause.evidence.push_back(fmt::format("kernels of the {} side only take {}, of the {} side only {}", reversed ? "new" : "base", durationText(growth.goneNs / growth.members),
                                         reversed ? "base" : "new", durationText(growth.addedNs / growth.members)));
    return true;
}

bool explainedByWork(const ComputeGrowth& growth, const SideMeans& now, const std::vector<std::string>& roles, bool reversed, ChangeCause& cause) {
    if (growth.work() <= kIsWhy * growth.time()) return false;
    const bool wholeStage = isAllOf(now, roles, &RoleSummary::stage) && now.roles.at(roles.front()).stage >= 0;
    cause.evidence.push_back(fmt::format("at the {} side's speed the {} side's work would take {}", reversed ? "new" : "base", reversed ? "base" : "new", longerText(growth.work())));
    cause.kind = roles.empty() ? "more_work" : wholeStage ? "stage_imbalance" : "uneven_work";
    cause.diagnosis = roles.empty() ? "" : wholeStage ? "RS102" : "RS304";
    cause.text = fmt::format("{} compute{} more: {}", cause.where, cause.ranks.size() == 1 ? "s" : "", amountGrowthText(growth.work(), "work"));
    return true;
}

bool explainedByContention(const ComputeGrowth& growth, ChangeCause& cause) {
    if (growth.slowedNs <= kIsWhy * growth.ns()) return false;
    cause.kind = "contention";
    cause.diagnosis = "RS209";
    cause.text = fmt::format("communication slows the compute beside it, on {}", cause.where);
    return true;
}

}  // namespace

ChangeCause computeCause(const SideMeans& base, const SideMeans& now, double ns, bool reversed) {
    ChangeCause cause;
    cause.ns = ns;
    cause.kind = "unknown";
    const std::vector<std::string> roles = rolesThatGrew(base, now, &RoleSummary::computeNs);
    cause.where = placeText(now, roles, cause.ranks);
    const ComputeGrowth growth = growthOf(base, now, roles);
    if (growth.time() < kGrew || !explainsPath(growth, base, now, ns)) return {"unknown", "", "", "", {}, ns, {}};
    cause.evidence.push_back(fmt::format("compute of {}: {} a step ({})", cause.where,
                                         fromTo(durationText(growth.baseNs / growth.members), durationText(growth.newNs / growth.members), reversed),
                                         timeGrowthText(fromBase(growth.time(), reversed))));
    if (explainedByOtherKernels(growth, base, now, roles, reversed, cause) || explainedByWork(growth, now, roles, reversed, cause) || explainedByContention(growth, cause)) return cause;
    const bool wholeHost = roles.size() > 1 && isAllOf(now, roles, &RoleSummary::host);
    cause.kind = roles.empty() ? "slower_compute" : wholeHost ? "slow_node" : "straggler";
    cause.diagnosis = roles.empty() ? "" : wholeHost ? "RS302" : "RS301";
    cause.text = fmt::format("the same kernels are slower on {}: {}", cause.where, timeGrowthText(growth.time()));
    return cause;
}

}  // namespace rankscope::analyzer

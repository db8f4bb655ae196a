// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/cause_compute.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/compare/attribution_changes.h"
#include "analyzer/compare/cause_text.h"
#include "analyzer/compare/compute_growth.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

constexpr double kIsWhy =
    0.5;  // of the growth in time that work, other kernels or communication must explain to be its reason
constexpr double kOfAll =
    0.15;  // of the growth of ranks that stand out: less of it on the others is what ranks differ by anyway
constexpr double kWanders = 1.5;  // growth of the heaviest rank of each run against that of the roles that stand out:
                                  // in three runs a role that is heaviest in one grows by a third of it
constexpr double kGrew =
    0.001;  // of compute: no machine repeats a run better than that (kNoiseFloor), so less is no growth

template <typename Value>
bool isAllOf(const SideMeans& side, const std::vector<std::string>& roles, Value RoleSummary::*part) {
    if (roles.empty()) return false;
    const Value& first = side.roles.at(roles.front()).*part;
    const auto same = [&](const std::string& name) { return side.roles.at(name).*part == first; };
    const auto members = std::count_if(side.roles.begin(), side.roles.end(),
                                       [&](const auto& role) { return role.second.*part == first; });
    return std::all_of(roles.begin(), roles.end(), same) && members == static_cast<long>(roles.size()) &&
           roles.size() < side.roles.size();
}

/// Ranks beside `roles`.
std::vector<std::string> others(const SideMeans& side, const std::vector<std::string>& roles) {
    std::vector<std::string> names;
    for (const auto& [name, role] : side.roles)
        if (std::find(roles.begin(), roles.end(), name) == roles.end()) names.push_back(name);
    return names;
}

/// Kernels gave way to others that take longer.
bool explainedByOtherKernels(const ComputeGrowth& growth, bool reversed, ChangeCause& cause) {
    if (!growth.replaced() || growth.addedNs - growth.goneNs <= kIsWhy * growth.ns()) return false;
    cause.kind = "other_kernels";
    cause.text = fmt::format("other kernels run on {}, {} in place of {}: {}", cause.where, growth.added, growth.gone,
                             timeGrowthText(growth.time()));
    cause.evidence.push_back(fmt::format("kernels of the {} side only take {}, of the {} side only {}",
                                         reversed ? "new" : "base", text::durationText(growth.goneNs / growth.members),
                                         reversed ? "base" : "new",
                                         text::durationText(growth.addedNs / growth.members)));
    return true;
}

bool explainedByWork(const ComputeGrowth& growth, const SideMeans& now, const std::vector<std::string>& roles,
                     bool reversed, ChangeCause& cause) {
    if (growth.work() <= kIsWhy * growth.time()) return false;
    const bool wholeStage = isAllOf(now, roles, &RoleSummary::stage) && now.roles.at(roles.front()).stage >= 0;
    cause.evidence.push_back(fmt::format("at the {} side's speed the {} side's work would take {}",
                                         reversed ? "new" : "base", reversed ? "base" : "new",
                                         longerText(growth.work())));
    cause.kind = roles.empty() ? "more_work" : wholeStage ? "stage_imbalance" : "uneven_work";
    cause.diagnosis = roles.empty() ? "" : wholeStage ? diagnose::kStageImbalance.id : diagnose::kUnevenWork.id;
    cause.text = fmt::format("{} compute{} more: {}", cause.where,
                             cause.ranks.size() == 1 || cause.where.starts_with("one ") ? "s" : "",
                             amountGrowthText(growth.work(), "work"));
    return true;
}

bool explainedByContention(const ComputeGrowth& growth, ChangeCause& cause) {
    if (growth.slowedNs <= kIsWhy * growth.ns()) return false;
    cause.kind = "contention";
    cause.diagnosis = diagnose::kContention.id;
    cause.text = fmt::format("communication slows the compute beside it, on {}", cause.where);
    return true;
}

/// Of ranks that grew by this much; all of them when `roles` is empty.
ChangeCause causeOfGrowth(const ComputeGrowth& growth, const SideMeans& now, const std::vector<std::string>& roles,
                          ChangeCause cause, bool reversed) {
    cause.evidence.push_back(fmt::format("compute of {}: {} a step ({})", cause.where,
                                         fromTo(text::durationText(growth.baseNs / growth.members),
                                                text::durationText(growth.newNs / growth.members), reversed),
                                         timeGrowthText(fromBase(growth.time(), reversed))));
    if (explainedByOtherKernels(growth, reversed, cause) || explainedByWork(growth, now, roles, reversed, cause) ||
        explainedByContention(growth, cause))
        return cause;
    const bool wholeHost = roles.size() > 1 && isAllOf(now, roles, &RoleSummary::host);
    cause.kind = roles.empty() ? "slower_compute" : wholeHost ? "slow_node" : "straggler";
    cause.diagnosis = roles.empty() ? "" : wholeHost ? diagnose::kStragglerNode.id : diagnose::kStraggler.id;
    cause.text = fmt::format("the same kernels are slower on {}: {}", cause.where, timeGrowthText(growth.time()));
    return cause;
}

ChangeCause causeOfRoles(const ComputeGrowth& growth, const SideMeans& now, const std::vector<std::string>& roles,
                         double ns, bool reversed) {
    ChangeCause cause;
    cause.ns = ns;
    cause.where = placeText(now, roles, cause.ranks);
    return causeOfGrowth(growth, now, roles, std::move(cause), reversed);
}

/// Of one rank, another in each run: no role has grown by as much in the mean of the runs.
ChangeCause causeOfHeaviest(const ComputeGrowth& growth, const SideMeans& now, double ns, bool reversed) {
    ChangeCause cause;
    cause.ns = ns;
    cause.where = "one rank, another in each run";
    cause = causeOfGrowth(growth, now, {}, std::move(cause), reversed);
    if (cause.kind == "more_work") {
        cause.kind = "uneven_work";
        cause.diagnosis = diagnose::kUnevenWork.id;
    } else if (cause.kind == "slower_compute") {
        cause.kind = "straggler";
        cause.diagnosis = diagnose::kStraggler.id;
    }
    return cause;
}

}  // namespace

std::vector<ChangeCause> computeCauses(const SideMeans& base, const SideMeans& now, double ns, bool reversed) {
    const std::vector<std::string> roles = rolesThatGrew(base, now, &RoleSummary::computeNs);
    ComputeGrowth growth = growthOf(base, now, roles);
    const ComputeGrowth heaviest = growthOfHeaviest(base, now);
    const bool wanders = base.runs + now.runs > 2 &&
                         heaviest.ns() > kWanders * std::max(0.0, growth.ns() / std::max(1.0, growth.members));
    if (wanders && heaviest.time() >= kGrew && explainsPath(heaviest, base, now, ns))
        return {causeOfHeaviest(heaviest, now, ns, reversed)};
    if (growth.time() < kGrew || !explainsPath(growth, base, now, ns)) return {};
    if (roles.empty()) return {causeOfRoles(growth, now, roles, ns, reversed)};
    const ComputeGrowth rest = growthOf(base, now, others(now, roles));
    if (rest.replaced())
        growth.goneNs = growth.addedNs = growth.untoldNs =
            0;  // all ranks have other kernels: that is not why these stand out
    const double common =
        rest.ns() / rest.members / (growth.ns() / growth.members);  // share of the growth that all ranks have
    if (common < kOfAll) return {causeOfRoles(growth, now, roles, ns, reversed)};
    return {causeOfRoles(growth.beyond(rest), now, roles, (1 - common) * ns, reversed),
            causeOfRoles(rest, now, {}, common * ns, reversed)};
}

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/side_means.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analyzer/diagnose/price.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"

namespace rankscope::compare {
namespace {

void addShare(const std::map<std::string, double>& from, double share, std::map<std::string, double>& to) {
    for (const auto& [name, value] : from) to[name] += share * value;
}

void add(const RoleSummary& from, double share, RoleSummary& to) {
    to.role = from.role;
    to.rank = from.rank;
    to.stage = from.stage;
    to.host = from.host;
    for (const auto& field : kRoleNumbers) to.*field.member += share * from.*field.member;
    for (const auto& [name, work] : from.work) {
        to.work[name].ns += share * work.ns;
        to.work[name].blocks += share * work.blocks;
    }
    addShare(from.idleByCauseNs, share, to.idleByCauseNs);
    addShare(from.stallByCauseNs, share, to.stallByCauseNs);
}

void add(const TrafficSummary& from, double share, TrafficSummary& to) {
    to.use = from.use;
    to.op = from.op;
    to.ranks = from.ranks;
    to.nodes = std::max(to.nodes, from.nodes);
    to.sizeClass = from.sizeClass;
    if (!from.dataType.empty()) to.dataType = from.dataType;
    if (!from.algorithm.empty()) to.algorithm = from.algorithm;
    if (!from.protocol.empty()) to.protocol = from.protocol;
    for (const auto& field : kTrafficNumbers) to.*field.member += share * from.*field.member;
}

/// Of a sum of which one part is not known nothing is.
void add(const std::optional<double>& from, double share, std::optional<double>& to) {
    if (from && to)
        *to += share * *from;
    else
        to.reset();
}

void add(const FindingSummary& from, double share, double stepNs, SideMeans& side) {
    std::vector<std::string> roles = from.roles;
    std::ranges::sort(roles);
    FindingMeans& to = side.findings[{from.id, std::move(roles)}];
    const bool isFound = from.verdict == "found";
    // Nothing else than a small saving makes a note of what was played.
    const double floorShare = std::max(from.leastShare.value_or(0), diagnose::PriceThresholds::kFloorShare);
    const bool isFoundByCost = from.savingNs && from.costNs && *from.costNs >= floorShare * stepNs;
    if (!to.side.isThere || (isFound && to.example.verdict != "found")) to.example = from;
    to.side.isThere = true;
    to.side.runs += isFound;
    to.runsByCost += isFound || isFoundByCost;
    add(from.costNs, share, to.side.costNs);
    add(from.savingNs, share, to.side.savingNs);
}

/// Returns the roles of a run, or their ranks.
template <typename Value>
std::set<Value> valuesOf(const RunSummary& run, Value RoleSummary::*member) {
    std::set<Value> values;
    for (const RoleSummary& role : run.roles) values.insert(role.*member);
    return values;
}

void nameRolesByRank(RunSummary& run) {
    std::map<std::string, std::string> byRole;
    for (RoleSummary& role : run.roles) role.role = byRole[role.role] = "rank " + std::to_string(role.rank);
    for (FindingSummary& finding : run.findings)
        for (std::string& role : finding.roles)
            if (const auto name = byRole.find(role); name != byRole.end()) role = name->second;
}

constexpr double kReplaced = 0.3;  // of the time of kernels that are new: when as much is gone, they took its place
constexpr double kExplains = 0.5;  // of a change: what explains that much is its reason
// The same of a growth in percent, which the path shares with the ranks it leads through.
constexpr double kExplainsRate = 0.4;
constexpr double kCalled = 0.5;  // of a kernel's calls: when a rank's kernels have become that many more, it came on
                                 // top and was not one of them before

/// Prices what a kernel of the base takes with the other side's grid. A block of a matrix product does more where the
/// inner dimension grows with the outer ones: of a wider model blocks grow as the width and time as its square, so a
/// share of blocks explains up to its square in time, and at least itself.
double pricedNs(const KernelWork& before, const KernelWork& after) {
    if (before.blocks <= 0 || after.blocks <= 0 || before.ns <= 0) return before.ns;
    const double blocks = after.blocks / before.blocks;
    return before.ns *
           std::clamp(after.ns / before.ns, std::min(blocks, blocks * blocks), std::max(blocks, blocks * blocks));
}

size_t commonPrefix(const std::string& a, const std::string& b) {
    return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

void addWork(const RoleSummary& before, const RoleSummary& after, const SideMeans& now, ComputeGrowth& growth) {
    for (const auto& [name, work] : after.work) {
        if (before.work.count(name) != 0) continue;
        growth.addedNs += work.ns;
        // 0: it is one of those that the list does not tell apart.
        const double calls = text::valueAt(now.kernels, name).count;
        if (after.kernels - before.kernels >= kCalled * calls) growth.onTopNs += work.ns;
        if (work.ns > growth.longestAddedNs) growth.added = name;
        growth.longestAddedNs = std::max(growth.longestAddedNs, work.ns);
    }
    for (const auto& [name, work] : before.work) {
        growth.kernelNs += work.ns;
        if (const auto is = after.work.find(name); is != after.work.end()) {
            growth.workNs += pricedNs(work, is->second) - work.ns;
            continue;
        }
        growth.goneNs += work.ns;
        if (growth.gone.empty() || commonPrefix(name, growth.added) > commonPrefix(growth.gone, growth.added))
            growth.gone = name;
    }
}

/// Takes all ranks of a side as one: what is left to compare where no rank of one side has its like on the other.
RoleSummary meanRole(const SideMeans& side) {
    RoleSummary mean;
    const double share = 1 / static_cast<double>(std::max<size_t>(1, side.roles.size()));
    for (const auto& [name, role] : side.roles) add(role, share, mean);
    return mean;
}

void addRole(const RoleSummary& before, const RoleSummary& after, const SideMeans& now, ComputeGrowth& growth) {
    ++growth.members;
    growth.baseNs += before.computeNs;
    growth.newNs += after.computeNs;
    addWork(before, after, now, growth);
}

}  // namespace

void useNamesThatAllRunsHave(std::vector<RunSummary>& base, std::vector<RunSummary>& now) {
    if (base.empty() || now.empty()) return;
    const auto agreeOn = [&](auto member) {
        const auto isLikeFirst = [values = valuesOf(base.front(), member), member](const RunSummary& run) {
            return valuesOf(run, member) == values;
        };
        return std::ranges::all_of(base, isLikeFirst) && std::ranges::all_of(now, isLikeFirst);
    };
    if (agreeOn(&RoleSummary::role) || !agreeOn(&RoleSummary::rank)) return;
    for (auto* side : {&base, &now})
        for (RunSummary& run : *side) nameRolesByRank(run);
}

std::string commonValue(const std::vector<RunSummary>& runs, const std::string& key) {
    const std::string first = text::valueAt(runs.front().environment, key);
    const auto isFirst = [&](const RunSummary& run) { return text::valueAt(run.environment, key) == first; };
    return std::ranges::all_of(runs, isFirst) ? first : "";
}

SideMeans meansOf(const std::vector<RunSummary>& runs) {
    SideMeans side;
    side.runs = runs.size();
    side.hasPath = !runs.empty();
    const double share = runs.empty() ? 0 : 1 / static_cast<double>(runs.size());
    std::map<std::string, size_t> runsWithRole;
    for (const RunSummary& run : runs)
        for (const RoleSummary& role : run.roles) ++runsWithRole[role.role];
    for (const RunSummary& run : runs) {
        for (const RoleSummary& role : run.roles) {
            RoleSummary& sum = side.roles[role.role];
            add(role, 1 / static_cast<double>(runsWithRole.at(role.role)), sum);
            addShare(role.pathNs, share, sum.pathNs);  // of one path per run: those of all roles add up to its length
        }
        for (const TrafficSummary& row : run.traffic)
            add(row, share, side.traffic[{row.use, row.op, row.ranks, row.sizeClass}]);
        addShare(run.pathTransferNs, share, side.pathTransferNs);
        const double stepNs = facts::mean(run.stepsNs);
        side.meanStepNs += share * stepNs;
        for (const FindingSummary& finding : run.findings) add(finding, share, stepNs, side);
        side.hasPath = side.hasPath && run.hasPath;
        for (const KernelSummary& kernel : run.kernels) {
            KernelSummary& sum = side.kernels[kernel.name];
            sum.name = kernel.name;
            sum.count += share * kernel.count;
            sum.ns += share * kernel.ns;
        }
    }
    for (const auto& [name, role] : side.roles) addShare(role.pathNs, 1, side.pathNs);
    if (!runs.empty()) side.schedule = commonValue(runs, "schedule");
    return side;
}

FindingSide findingsOf(const SideMeans& side, const std::string& diagnosis) {
    FindingSide sum;
    for (const auto& [key, finding] : side.findings) {
        if (key.first != diagnosis) continue;
        sum.isThere = true;
        add(finding.side.costNs, 1, sum.costNs);
        add(finding.side.savingNs, 1, sum.savingNs);
    }
    return sum;
}

std::map<std::string, TrafficSummary> byUse(const SideMeans& side) {
    std::map<std::string, TrafficSummary> uses;
    std::map<std::string, double> most;  // bytes of the size class whose algorithm and data type stand for all
    for (const auto& [key, row] : side.traffic) {
        const std::string name = trafficName(row.use, row.op);
        TrafficSummary& sum = uses[name];
        TrafficSummary main = sum;
        add(row, 1, sum);
        sum.ranks = std::max(main.ranks, row.ranks);
        if (row.bytes >= most[name]) {
            most[name] = row.bytes;
        } else {
            sum.dataType = main.dataType;
            sum.algorithm = main.algorithm;
            sum.protocol = main.protocol;
        }
        sum.busbw =
            sum.transferNs > 0 ? sum.bytes / sum.transferNs * 1e9 : 0;  // of all sizes: bytes over time, no bus factor
        sum.sizeClass = -1;
    }
    return uses;
}

bool ComputeGrowth::replaced() const {
    return goneNs > 0 && goneNs >= kReplaced * addedNs;
}

ComputeGrowth growthOf(const SideMeans& base, const SideMeans& now, const std::vector<std::string>& roles) {
    ComputeGrowth growth;
    for (const auto& [name, after] : now.roles) {
        const auto before = base.roles.find(name);
        if (before == base.roles.end() || (!roles.empty() && std::ranges::find(roles, name) == roles.end())) continue;
        addRole(before->second, after, now, growth);
    }
    if (growth.members == 0) addRole(meanRole(base), meanRole(now), now, growth);
    return growth;
}

bool explainsPath(const ComputeGrowth& growth, const SideMeans& base, const SideMeans& now, double ns) {
    if (!base.hasPath || !now.hasPath || growth.members <= 0) return true;
    const double pathNs = text::valueAt(base.pathNs, "compute");
    const double direction = ns < 0 ? -1 : 1;
    return direction * growth.ns() / growth.members >= kExplains * std::abs(ns) ||
           (pathNs > 0 && direction * growth.time() >= kExplainsRate * std::abs(ns) / pathNs);
}

}  // namespace rankscope::compare

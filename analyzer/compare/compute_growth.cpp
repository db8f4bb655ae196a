// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/compute_growth.h"

#include <algorithm>
#include <cmath>

namespace rankscope::compare {
namespace {

constexpr double kReplaced = 0.3;  // of the time of kernels that are new: when as much is gone, they took its place
constexpr double kExplains = 0.5;  // of a change: what explains that much is its reason
constexpr double kExplainsRate =
    0.4;  // the same of a growth in percent, which the path shares with the ranks it leads through
constexpr double kCalled = 0.5;  // of a kernel's calls: when a rank's kernels have become that many more, it came on
                                 // top and was not one of them before

/// What a kernel of the base takes with the other side's grid. A block of a matrix product does more where the inner
/// dimension grows with the outer ones: of a wider model blocks grow as the width and time as its square, so a share of
/// blocks explains up to its square in time, and at least itself.
double pricedNs(const KernelWork& before, const KernelWork& after) {
    if (before.blocks <= 0 || after.blocks <= 0 || before.ns <= 0) return before.ns;
    const double blocks = after.blocks / before.blocks;
    return before.ns *
           std::clamp(after.ns / before.ns, std::min(blocks, blocks * blocks), std::max(blocks, blocks * blocks));
}

size_t commonPrefix(const std::string& a, const std::string& b) {
    return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// Calls of a kernel a step, mean over ranks; 0: it is one of those that the list does not tell apart.
double callsOf(const SideMeans& side, const std::string& name) {
    const auto kernel = side.kernels.find(name);
    return kernel == side.kernels.end() ? 0 : kernel->second.count;
}

void addWork(const RoleSummary& before, const RoleSummary& after, const SideMeans& now, ComputeGrowth& growth) {
    for (const auto& [name, work] : after.work) {
        if (before.work.count(name) != 0) continue;
        growth.addedNs += work.ns;
        if (after.kernels - before.kernels >= kCalled * callsOf(now, name)) growth.onTopNs += work.ns;
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

/// All ranks of a side as one: what is left to compare where no rank of one side has its like on the other.
RoleSummary meanRole(const SideMeans& side) {
    RoleSummary mean;
    const double share = 1 / static_cast<double>(std::max<size_t>(1, side.roles.size()));
    for (const auto& [name, role] : side.roles) {
        mean.computeNs += share * role.computeNs;
        mean.kernels += share * role.kernels;
        for (const auto& [kernel, work] : role.work) {
            mean.work[kernel].ns += share * work.ns;
            mean.work[kernel].blocks += share * work.blocks;
        }
    }
    return mean;
}

void addRole(const RoleSummary& before, const RoleSummary& after, const SideMeans& now, ComputeGrowth& growth) {
    ++growth.members;
    growth.baseNs += before.computeNs;
    growth.newNs += after.computeNs;
    addWork(before, after, now, growth);
}

}  // namespace

bool ComputeGrowth::replaced() const {
    return goneNs > 0 && goneNs >= kReplaced * addedNs;
}

ComputeGrowth growthOf(const SideMeans& base, const SideMeans& now, const std::vector<std::string>& roles) {
    ComputeGrowth growth;
    for (const auto& [name, after] : now.roles) {
        const auto before = base.roles.find(name);
        if (before == base.roles.end() ||
            (!roles.empty() && std::find(roles.begin(), roles.end(), name) == roles.end()))
            continue;
        addRole(before->second, after, now, growth);
    }
    if (growth.members == 0) addRole(meanRole(base), meanRole(now), now, growth);
    return growth;
}

bool explainsPath(const ComputeGrowth& growth, const SideMeans& base, const SideMeans& now, double ns) {
    if (!base.hasPath || !now.hasPath || growth.members <= 0) return true;
    const auto path = base.pathNs.find("compute");
    const double pathNs = path == base.pathNs.end() ? 0 : path->second;
    const double direction = ns < 0 ? -1 : 1;
    return direction * growth.ns() / growth.members >= kExplains * std::abs(ns) ||
           (pathNs > 0 && direction * growth.time() >= kExplainsRate * std::abs(ns) / pathNs);
}

}  // namespace rankscope::compare

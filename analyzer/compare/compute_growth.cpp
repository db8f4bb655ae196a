// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/compute_growth.h"

#include <algorithm>
#include <cmath>
#include <set>

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

/// What is known of kernels on a side, most of which are too short for the lists of its ranks.
class KnownKernels {
  public:
    explicit KnownKernels(const SideMeans& side) : side_(side) {
        if (side.kernels.size() <= RunSummary::kMostKernelsOfARank) return;  // the lists have them all
        for (const auto& [name, role] : side.roles)
            for (const auto& [kernel, work] : role.work) listed_.insert(kernel);
    }

    /// Of one that no rank lists though the side has it; null: there is none.
    const KernelSummary* tooShort(const std::string& name) const {
        return isCut() && listed_.count(name) == 0 ? find(name) : nullptr;
    }
    /// Whether one of this name may be among those that stand for all others.
    bool mayBeThere(const std::string& name) const {
        return listed_.count(name) == 0 && !find(name) && find(kAllOthers);
    }
    double calls(const std::string& name) const { return find(name) ? find(name)->count : 0; }
    double meanNs(const std::string& name) const { return find(name) ? find(name)->ns : 0; }

  private:
    static constexpr const char* kAllOthers = "all others";  // RunSummary::kernels

    bool isCut() const { return side_.kernels.size() > RunSummary::kMostKernelsOfARank; }
    const KernelSummary* find(const std::string& name) const {
        const auto kernel = side_.kernels.find(name);
        return kernel == side_.kernels.end() ? nullptr : &kernel->second;
    }

    const SideMeans& side_;
    std::set<std::string> listed_;
};

/// What a kernel of the base takes when it is called so much more often; no more of its growth than there is.
double pricedByCalls(double beforeNs, double afterNs, double beforeCalls, double afterCalls) {
    if (beforeCalls <= 0 || afterCalls <= 0) return beforeNs;
    const double calledNs = beforeNs * afterCalls / beforeCalls;
    return std::clamp(afterNs, std::min(beforeNs, calledNs), std::max(beforeNs, calledNs));
}

void addNewKernel(const std::string& name, const KernelWork& work, const KnownKernels& base, const KnownKernels& now,
                  double moreKernels, ComputeGrowth& growth) {
    if (const KernelSummary* was = base.tooShort(name)) {
        const double beforeNs = now.meanNs(name) > 0 ? was->ns * work.ns / now.meanNs(name)
                                                     : was->ns;  // this rank's share as the new side has it
        growth.kernelNs += beforeNs;
        growth.workNs += pricedByCalls(beforeNs, work.ns, was->count, now.calls(name)) - beforeNs;
        return;
    }
    growth.addedNs += work.ns;
    if (base.mayBeThere(name) && moreKernels < kCalled * now.calls(name)) growth.untoldNs += work.ns;
}

/// Whether it is gone altogether.
bool addGoneKernel(const std::string& name, const KernelWork& work, const KnownKernels& base, const KnownKernels& now,
                   double fewerKernels, ComputeGrowth& growth) {
    if (const KernelSummary* is = now.tooShort(name)) {
        const double afterNs = base.meanNs(name) > 0 ? is->ns * work.ns / base.meanNs(name) : is->ns;
        growth.workNs += pricedByCalls(work.ns, afterNs, base.calls(name), is->count) - work.ns;
        return false;
    }
    growth.goneNs += work.ns;
    if (now.mayBeThere(name) && fewerKernels < kCalled * base.calls(name)) growth.untoldNs -= work.ns;
    return true;
}

void addWork(const RoleSummary& before, const RoleSummary& after, const KnownKernels& base, const KnownKernels& now,
             ComputeGrowth& growth) {
    for (const auto& [name, work] : after.work) {
        if (before.work.count(name) != 0) continue;
        const double addedNs = growth.addedNs;
        addNewKernel(name, work, base, now, after.kernels - before.kernels, growth);
        if (growth.addedNs <= addedNs) continue;
        if (work.ns > growth.longestAddedNs) growth.added = name;
        growth.longestAddedNs = std::max(growth.longestAddedNs, work.ns);
    }
    for (const auto& [name, work] : before.work) {
        growth.kernelNs += work.ns;
        if (const auto is = after.work.find(name); is != after.work.end()) {
            growth.workNs += pricedNs(work, is->second) - work.ns;
            continue;
        }
        if (!addGoneKernel(name, work, base, now, before.kernels - after.kernels, growth)) continue;
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
        mean.slowedNs += share * role.slowedNs;
        mean.kernels += share * role.kernels;
        for (const auto& [kernel, work] : role.work) {
            mean.work[kernel].ns += share * work.ns;
            mean.work[kernel].blocks += share * work.blocks;
        }
    }
    return mean;
}

void addRole(const RoleSummary& before, const RoleSummary& after, const KnownKernels& base, const KnownKernels& now,
             ComputeGrowth& growth) {
    ++growth.members;
    growth.baseNs += before.computeNs;
    growth.newNs += after.computeNs;
    growth.slowedNs += after.slowedNs - before.slowedNs;
    addWork(before, after, base, now, growth);
}

}  // namespace

bool ComputeGrowth::replaced() const {
    return goneNs > 0 && goneNs >= kReplaced * addedNs;
}

ComputeGrowth ComputeGrowth::beyond(const ComputeGrowth& others) const {
    const double share = others.members > 0 ? members / others.members : 0;
    ComputeGrowth rest = *this;
    rest.newNs -= share * others.ns();
    rest.slowedNs -= share * others.slowedNs;
    rest.workNs -= share * others.workNs;
    rest.goneNs = std::max(0.0, goneNs - share * others.goneNs);
    rest.addedNs = std::max(0.0, addedNs - share * others.addedNs);
    rest.untoldNs = std::clamp(untoldNs - share * others.untoldNs, -rest.goneNs, rest.addedNs);
    return rest;
}

ComputeGrowth growthOf(const SideMeans& base, const SideMeans& now, const std::vector<std::string>& roles) {
    ComputeGrowth growth;
    const KnownKernels baseKernels(base), nowKernels(now);
    for (const auto& [name, after] : now.roles) {
        const auto before = base.roles.find(name);
        if (before == base.roles.end() ||
            (!roles.empty() && std::find(roles.begin(), roles.end(), name) == roles.end()))
            continue;
        addRole(before->second, after, baseKernels, nowKernels, growth);
    }
    if (growth.members == 0) addRole(meanRole(base), meanRole(now), baseKernels, nowKernels, growth);
    return growth;
}

ComputeGrowth growthOfHeaviest(const SideMeans& base, const SideMeans& now) {
    ComputeGrowth growth;
    if (base.heaviest.computeNs > 0)
        addRole(base.heaviest, now.heaviest, KnownKernels(base), KnownKernels(now), growth);
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

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/side_means.h"

#include <algorithm>
#include <numeric>
#include <set>

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
    for (double RoleSummary::*part :
         {&RoleSummary::stepNs, &RoleSummary::computeNs, &RoleSummary::exposedWaitNs, &RoleSummary::exposedTransferNs,
          &RoleSummary::overlappedCommNs, &RoleSummary::memoryNs, &RoleSummary::idleNs, &RoleSummary::kernels})
        to.*part += share * from.*part;
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
    for (double TrafficSummary::*part :
         {&TrafficSummary::count, &TrafficSummary::bytes, &TrafficSummary::transferNs, &TrafficSummary::waitNs,
          &TrafficSummary::exposedTransferNs, &TrafficSummary::exposedWaitNs, &TrafficSummary::busbw})
        to.*part += share * from.*part;
}

std::set<std::string> roleNames(const RunSummary& run) {
    std::set<std::string> names;
    for (const RoleSummary& role : run.roles) names.insert(role.role);
    return names;
}

std::set<int> rankNumbers(const RunSummary& run) {
    std::set<int> ranks;
    for (const RoleSummary& role : run.roles) ranks.insert(role.rank);
    return ranks;
}

std::string scheduleOf(const RunSummary& run) {
    const auto schedule = run.environment.find("schedule");
    return schedule == run.environment.end() ? "" : schedule->second;
}

void nameRolesByRank(RunSummary& run) {
    std::map<std::string, std::string> byRole;
    for (RoleSummary& role : run.roles) role.role = byRole[role.role] = "rank " + std::to_string(role.rank);
    for (FindingSummary& finding : run.findings)
        for (std::string& role : finding.roles)
            if (const auto name = byRole.find(role); name != byRole.end()) role = name->second;
}

}  // namespace

void useNamesThatAllRunsHave(std::vector<RunSummary>& base, std::vector<RunSummary>& now) {
    if (base.empty() || now.empty()) return;
    const std::set<std::string> names = roleNames(base.front());
    const std::set<int> ranks = rankNumbers(base.front());
    bool sameNames = true, sameRanks = true;
    for (const auto* side : {&base, &now})
        for (const RunSummary& run : *side) {
            sameNames = sameNames && roleNames(run) == names;
            sameRanks = sameRanks && rankNumbers(run) == ranks;
        }
    if (sameNames || !sameRanks) return;
    for (auto* side : {&base, &now})
        for (RunSummary& run : *side) nameRolesByRank(run);
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
        for (const FindingSummary& finding : run.findings)
            side.findingNs[finding.id] += share * finding.costNs.value_or(0);
        if (!run.stepsNs.empty())
            side.meanStepNs += share * std::accumulate(run.stepsNs.begin(), run.stepsNs.end(), 0.0) /
                               static_cast<double>(run.stepsNs.size());
        side.hasPath = side.hasPath && run.hasPath;
        for (const KernelSummary& kernel : run.kernels) {
            KernelSummary& sum = side.kernels[kernel.name];
            sum.name = kernel.name;
            sum.count += share * kernel.count;
            sum.ns += share * kernel.ns;
        }
    }
    for (const auto& [name, role] : side.roles) addShare(role.pathNs, 1, side.pathNs);
    if (!runs.empty() && std::all_of(runs.begin(), runs.end(), [&](const RunSummary& run) {
            return scheduleOf(run) == scheduleOf(runs.front());
        }))
        side.schedule = scheduleOf(runs.front());
    return side;
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

}  // namespace rankscope::compare

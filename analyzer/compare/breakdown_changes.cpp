// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/breakdown_changes.h"

#include <algorithm>
#include <map>

namespace rankscope::compare {
namespace {

BreakdownSide sideOf(const RoleSummary& role) {
    return {role.stepNs,   role.computeNs, role.overlappedCommNs, role.exposedTransferNs, role.exposedWaitNs,
            role.memoryNs, role.idleNs};
}

}  // namespace

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

}  // namespace rankscope::compare

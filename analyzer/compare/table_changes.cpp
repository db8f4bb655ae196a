// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/table_changes.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analyzer/compare/metric_values.h"

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

}  // namespace

std::vector<CollectiveChange> compareCollectives(const SideMeans& base, const SideMeans& now) {
    std::map<TrafficKey, CollectiveChange> rows;
    const auto gather = [&](const SideMeans& side, std::optional<CollectiveSide> CollectiveChange::*part) {
        for (const auto& [key, traffic] : side.traffic) {
            CollectiveChange& row = rows[key];
            row.role = traffic.use;
            row.op = traffic.op;
            row.ranks = traffic.ranks;
            row.sizeClass = sizeClassText(traffic.sizeClass);
            row.*part = sideOf(traffic);
        }
    };
    gather(base, &CollectiveChange::base);
    gather(now, &CollectiveChange::now);
    std::vector<CollectiveChange> sorted;
    for (auto& [key, row] : rows) sorted.push_back(std::move(row));
    std::stable_sort(sorted.begin(), sorted.end(), [](const CollectiveChange& a, const CollectiveChange& b) {
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
    std::stable_sort(sorted.begin(), sorted.end(), [](const KernelChange& a, const KernelChange& b) {
        return std::abs(a.deltaNs) > std::abs(b.deltaNs);
    });
    return sorted;
}

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
// The runs of one side as one: means over them, ranks matched by role, traffic by use.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/compare/run_summary.h"

namespace rankscope::analyzer {

using TrafficKey = std::tuple<std::string, std::string, int, int>;  // use, op, ranks, size class

struct SideMeans {
    size_t runs = 0;
    std::map<std::string, RoleSummary> roles;
    std::map<TrafficKey, TrafficSummary> traffic;
    std::map<std::string, double> pathNs;          // critical path by category, all ranks
    std::map<std::string, double> pathTransferNs;  // its transfers by "op of use"
    std::map<std::string, KernelSummary> kernels;
    bool hasPath = false;                          // every run has one
};

SideMeans meansOf(const std::vector<RunSummary>& runs);

/// All size classes of one use and operation together.
std::map<std::string, TrafficSummary> byUse(const SideMeans& side);

}  // namespace rankscope::analyzer

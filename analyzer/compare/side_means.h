// SPDX-License-Identifier: Apache-2.0
// The runs of one side as one: means over them, ranks matched by role, traffic by use.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

using TrafficKey = std::tuple<std::string, std::string, int, int>;  // use, op, ranks, size class

struct SideMeans {
    size_t runs = 0;
    std::map<std::string, RoleSummary> roles;
    std::map<TrafficKey, TrafficSummary> traffic;
    std::map<std::string, double> pathNs;          // critical path by category, all ranks
    std::map<std::string, double> pathTransferNs;  // its transfers by "op of use"
    std::map<std::string, KernelSummary> kernels;
    std::map<std::string, double> findingNs;  // by diagnosis: what its findings cost, wherever they are
    double meanStepNs = 0;                    // of all steps; what the times above add up to
    std::string schedule;  // of the pipeline: "1f1b, 8 micro-batches, 1 virtual stages"; empty: none, unknown, or the
                           // runs differ
    bool hasPath = false;  // every run has one
};

/// Ranks are known by their places in the layout, which may be told in one run and not in another. Where the names
/// differ and the ranks do not, all runs take "rank N".
void useNamesThatAllRunsHave(std::vector<RunSummary>& base, std::vector<RunSummary>& now);

/// A role's times are means over the runs that have it; traffic, kernels and the critical path over all runs.
SideMeans meansOf(const std::vector<RunSummary>& runs);

/// All size classes of one use and operation together.
std::map<std::string, TrafficSummary> byUse(const SideMeans& side);

}  // namespace rankscope::compare

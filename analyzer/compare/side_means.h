// SPDX-License-Identifier: Apache-2.0
// The runs of one side as one: means over them, ranks matched by role, traffic by use.
// How much longer ranks compute on one side than on the other, and what of it is work, other kernels, or communication
// beside them.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

using TrafficKey = std::tuple<std::string, std::string, int, int>;  // use, op, ranks, size class

using FindingKey = std::pair<std::string, std::vector<std::string>>;  // diagnosis, roles of its ranks in order

struct FindingMeans {
    FindingSide side;
    int runsByCost = 0;      // that have it as a finding, or would have it if its repair could not be played
    FindingSummary example;  // as one run has it: as a finding, where one does
};

struct SideMeans {
    size_t runs = 0;
    std::map<std::string, RoleSummary> roles;
    std::map<TrafficKey, TrafficSummary> traffic;
    std::map<std::string, double> pathNs;          // critical path by category, all ranks
    std::map<std::string, double> pathTransferNs;  // its transfers by "op of use"
    std::map<std::string, KernelSummary> kernels;
    std::map<FindingKey, FindingMeans> findings;
    double meanStepNs = 0;  // of all steps; what the times above add up to
    std::string schedule;   // of the pipeline: "1f1b, 8 micro-batches, 1 virtual stages"; empty: none, unknown, or the
                            // runs differ
    bool hasPath = false;   // every run has one
};

/// Ranks are known by their places in the layout, which may be told in one run and not in another. Where the names
/// differ and the ranks do not, all runs take "rank N".
void useNamesThatAllRunsHave(std::vector<RunSummary>& base, std::vector<RunSummary>& now);

/// A role's times are means over the runs that have it; traffic, kernels and the critical path over all runs.
SideMeans meansOf(const std::vector<RunSummary>& runs);

/// Returns what the environments of all runs agree on; empty when they do not, or it is unknown. There is one run at
/// least.
std::string commonValue(const std::vector<RunSummary>& runs, const std::string& key);

/// What all findings of a diagnosis come to on a side, wherever they are.
FindingSide findingsOf(const SideMeans& side, const std::string& diagnosis);

/// Puts all size classes of one use and operation together.
std::map<std::string, TrafficSummary> byUse(const SideMeans& side);

/// Sums over ranks that have their like on the other side; ns per step.
struct ComputeGrowth {
    double members = 0;
    double baseNs = 0, newNs = 0;
    double kernelNs = 0;             // of the base: kernels that are told apart
    double workNs = 0;               // of the growth: kernels of both sides whose grids grew
    double goneNs = 0, addedNs = 0;  // kernels that only the base has, that only the new side has
    double longestAddedNs = 0;       // of the kernel `added`, on the rank where it takes longest
    double onTopNs = 0;       // of addedNs: by their number kernels that came on top. Others may have been among the
                              // short ones that a list leaves out
    std::string gone, added;  // the longest of those added, and the one of those gone whose name is most like it

    double ns() const { return newNs - baseNs; }
    double time() const { return baseNs > 0 ? newNs / baseNs - 1 : 0; }
    /// Growth of work as a share of what the base computes: larger grids and, unless they replace others, more kernels.
    double work() const { return kernelNs > 0 ? (workNs + (replaced() ? 0 : onTopNs)) / kernelNs : 0; }
    /// Tells whether kernels gave way to others, instead of some coming on top.
    bool replaced() const;
};

/// Sums over `roles`; over all that both sides have when it is empty, and over the mean of all ranks where no rank has
/// its like.
ComputeGrowth growthOf(const SideMeans& base, const SideMeans& now, const std::vector<std::string>& roles);

/// Tells whether ranks that compute so much longer explain that `ns` more of the critical path are compute. If not, the
/// path only leads through more of it: through more stages of a pipeline one behind the other, or where something else
/// got shorter. True without critical paths.
bool explainsPath(const ComputeGrowth& growth, const SideMeans& base, const SideMeans& now, double ns);

}  // namespace rankscope::compare

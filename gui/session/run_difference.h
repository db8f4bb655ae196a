// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "gui/session/run_info.h"

namespace rankscope::gui {

/// Where each run has a finding: an index in its RunInfo::findings.
struct FindingPlaces {
    std::optional<size_t> inA, inB;
};

/// The longest kernel of a name in each run's analysed steps; table none where the run has no such kernel.
struct KernelPlaces {
    EventLink inA, inB;
};

/// What `rankscope compare A B` says, and where in the two timelines it can be seen.
struct RunDifference {
    compare::Comparison comparison;       ///< A is its base
    std::vector<FindingPlaces> findings;  ///< of each of comparison.findings
    std::vector<KernelPlaces> kernels;    ///< of each of comparison.kernels
    std::vector<std::string> remarks;     ///< why something of it cannot be seen
};

/// Reads both databases whole, as `rankscope compare` does with its defaults. Once `cancelled` is set it ends early,
/// with nothing. Throws store::Error where a file is damaged, compare::CompareError where a run has no steps.
RunDifference differenceOf(const RunInfo& a, const RunInfo& b, const std::atomic<bool>& cancelled);

/// Where the comparison's findings are among those that `analyze` left in the runs: paired by diagnosis and ranks, then
/// by diagnosis alone, as the ranks of a finding on both sides are B's.
std::vector<FindingPlaces> findPlaces(const compare::Comparison& comparison, const RunInfo& a, const RunInfo& b);

/// The verdict, why, and what to know besides, as lines of plain text that are safe to show.
std::string headText(const RunDifference& difference);

}  // namespace rankscope::gui

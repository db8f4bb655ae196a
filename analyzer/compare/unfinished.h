// SPDX-License-Identifier: Apache-2.0
// Runs whose recording ends before the job does: a rank died, is missing, or was still running when the run was
// collected.
#pragma once

#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// What did not finish, with its rank: "rank 2 (pid 7 on a) died of signal 9: its recording ends there"; of several the
/// one that stopped first, or their number. Empty: the run is whole.
std::string unfinishedText(const RunSummary& run);

/// "new run B did not finish: ...", for every run of that side that did not.
std::vector<std::string> unfinishedNotices(const std::vector<RunSummary>& runs, const char* side);

/// A row when a run that did not finish has fewer steps than every run that did: its steps are the first ones, and
/// those that went wrong are lost. Nothing where no run is whole. `across`: compared all the same.
std::vector<Incomparable> lostSteps(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                    bool across);

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
// Tells whether two sides may be compared: what differs between the jobs besides their speed.
#pragma once

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// Is thrown for runs that cannot be compared at all: what is wrong, and what to do.
class CompareError : public std::runtime_error {
  public:
    CompareError(const std::string& what, std::string hint = {}) : std::runtime_error(what), m_hint(std::move(hint)) {}
    const std::string& hint() const { return m_hint; }

  private:
    std::string m_hint;
};

struct Comparability {
    std::vector<Incomparable> rows;
    bool stepTimeRefused = false;
    std::string mixed;              // how runs of one side differ in kind, a sentence; empty: they do not
    std::string categoriesRefused;  // why times by category are not compared; empty: they are
};

/// Lists the names that `--across` takes: differences that are the question, not a mistake.
std::vector<std::string> acrossNames();

/// How two runs differ in what makes them another kind of job, one sentence each: "world size is 4 and 8". An unknown
/// value differs from nothing.
std::vector<std::string> differencesOfKind(const RunSummary& base, const RunSummary& now,
                                           const std::set<std::string>& across);

/// `across`: differences that do not forbid to compare. Neither side is empty.
Comparability checkComparability(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                 const std::set<std::string>& across);

// Runs whose recording ends before the job does: a rank died, is missing, or was still running when the run was
// collected.

/// Says what did not finish, with its rank: "rank 2 (pid 7 on a) died of signal 9: its recording ends there"; of
/// several the one that stopped first, or their number. Empty: the run is whole.
std::string unfinishedText(const RunSummary& run);

/// "new run B did not finish: ...", for every run of that side that did not.
std::vector<std::string> unfinishedNotices(const std::vector<RunSummary>& runs, const char* side);

}  // namespace rankscope::compare

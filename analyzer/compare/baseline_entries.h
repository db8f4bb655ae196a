// SPDX-License-Identifier: Apache-2.0
// The entries of a baseline: runs that were saved under one label, of one commit mostly. They are in the order in which
// they were saved, whatever the clocks of the machines say that recorded them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// Runs that were saved together. Those that are not like the others of it do not count.
struct BaselineEntry {
    std::string label;
    bool isAccepted = false;
    size_t first = 0, size = 0;   // of the runs
    std::vector<size_t> counted;  // places of those that count
    std::vector<double> logs;     // of the typical steps of those

    double value() const;  // mean of `logs`
    double weight() const { return static_cast<double>(logs.size()); }
};

/// Sorts runs by the order in which they were saved, then by the clock.
void sortByTime(std::vector<RunSummary>& runs);

/// Runs next to each other with one label are an entry, and runs without a label that were saved together; else a run
/// without a label is an entry by itself.
std::vector<BaselineEntry> entriesOf(const std::vector<RunSummary>& runs);

/// Logarithms of the typical steps of runs.
std::vector<double> logsOf(const std::vector<RunSummary>& runs);

/// The standard deviation of a run, by the middle of all pairs of a group, which one bad run does not move; kUsualNoise
/// where there are too few of them. Logarithms of typical steps.
double noiseDespiteOddRuns(const std::vector<std::vector<double>>& groups);

/// Takes the runs out of `entries` that are not like the others of their entry, and says which.
std::vector<LeftOutRun> leaveOutOddRuns(const std::vector<RunSummary>& runs, std::vector<BaselineEntry>& entries);

// With fewer degrees of freedom the variance of Student's distribution is beyond twice the normal's.
inline constexpr double kFewestDegrees = 4;

/// Of the logarithm of the step. It is an estimate, and may be too small.
struct RunNoise {
    double deviation = 0;  // of one run; above 0
    double degrees = 0;    // of freedom of that; above 2
    /// That of Student's distribution, which has longer tails the fewer the degrees.
    double widened() const;
};

/// Squares of the runs that count around the middle of their entry, of all entries with two or more.
EarlierNoise noiseWithinEntries(const std::vector<BaselineEntry>& entries);

/// From what runs of one entry differ by; without such pairs from what neighbouring entries do, which differ by the
/// noise alone but for the few between levels.
RunNoise noiseOfRuns(const std::vector<BaselineEntry>& entries);

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
// A baseline in time: of the runs that were saved over months, those that new runs are compared with. They are of the
// new runs' kind of job, and from the step's newest level: all runs since it last moved for good.
//
// Levels are told by change points of the logarithm of the step, between entries (the runs saved together under one
// label, else each run by itself), each entry with the median of its runs, so that one bad run of three moves nothing.
// The cost of a level is the sum over its entries of weight x (entry - level)^2 / noise^2, and each change point costs
// 3 ln(entries), the penalty of Zhang and Siegmund (A modified Bayes information criterion, Biometrics 63, 2007) for a
// mean that moves. The best set of change points is found exactly, by optimal partitioning with the pruning of PELT
// (Killick, Fearnhead and Eckley, JASA 107, 2012). The noise is what runs of one entry differ by, in the middle of all
// pairs.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// What runs of earlier levels tell of the noise between runs.
struct BaseChoice {
    std::vector<RunSummary> runs;  // of the newest level
    BaselineHistory history;
    EarlierNoise noise;
};

/// `baseline`: oldest first. `across`: differences that make no other kind. Where the baseline holds no run of the new
/// runs' kind, those of its newest kind are taken: why they cannot be compared is said of them. O(entries^2) at worst.
BaseChoice chooseBase(std::vector<RunSummary> baseline, const std::vector<RunSummary>& now,
                      const std::set<std::string>& across);

/// Runs of one kind in time: those saved together under one label are an entry, and entries make levels.
struct BaselineTimeline {
    struct Entry {
        size_t firstRun = 0, runs = 0;
        double stepNs = 0;  // middle of its runs
        size_t level = 0;
        bool beginsLevel = false;  // as one of its runs says
    };
    std::vector<Entry> entries;
    std::vector<BaselineLevel> levels;
    double noise = 0;  // standard deviation of the logarithm of a run's step
};

/// `runs`: of one kind, oldest first, each with a step.
BaselineTimeline timelineOf(const std::vector<RunSummary>& runs);

/// Where levels begin: 0 and the change points of entries with these values and weights (runs), ascending. `noise`: the
/// standard deviation of one run; above 0. `forced`: entries that begin a level whatever the values say.
std::vector<size_t> levelStarts(const std::vector<double>& values, const std::vector<double>& weights, double noise,
                                const std::vector<bool>& forced);

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
// A baseline in time: of the runs that were saved over months, those that new runs are compared with. They are of the
// new runs' kind of job, and from the step's newest level: all runs since it last moved for good.
//
// Levels are told by change points of the logarithm of the step, between entries (baseline_entries.h), each with the
// mean of its runs that are like the others. The cost of a level is the sum over its entries of runs x (entry -
// level)^2 / noise^2. A change point costs what one saves by chance, in a baseline that never moved, in kSplitByChance
// of baselines: the quantile of chi squared with one degree of freedom, the gain at one place, for so many places as it
// may be at (Bonferroni). The usual penalties, 2 or 3 ln(entries), are right for long series: of ten entries they split
// one level in 8 of 100. The best set of change points is found exactly, by
// optimal partitioning with the pruning of PELT (Killick, Fearnhead and Eckley, JASA 107, 2012).
//
// A change that was merged unseen, of 2 % say, makes the next harmless change look slow: the runs before it are of both
// speeds. Drawn pipelines that merge what their gate lets through blame twice as many harmless changes as an interval
// of a level that is known would. So the interval of new runs against a baseline is one of kLevelConfidence.
//
// New runs that differ from the newest level are not alone to blame when the entries before them differ alike: a change
// that was merged unnoticed, or for a good reason, is none of theirs. Of the two places where the level may have moved,
// before the new runs or before an entry of it, the likelier one counts (the least sum of squares, which is the
// estimate of a single change point with the greatest likelihood).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"
#include "analyzer/compare/step_time.h"

namespace rankscope::compare {

inline constexpr double kSplitByChance = 0.02;  // as often as a harmless change may fail a gate
// 0.5 % of what is harmless is beyond it by noise alone; with what was merged unseen, drawn pipelines blame 0.4, 1.4
// and 1.0 % of their harmless changes where runs differ by 0.5, 1 and 2 % and each change has runsNeeded() runs. With
// 0.985 the same pipelines at 2 % blame 2.5 % in place of 1.4 and find 97 % of regressions of 5 and 10 % in place of
// 99: more runs are asked for.
inline constexpr double kLevelConfidence = 0.99;

// More runs make the comparison no surer: the three new ones are what leaves it open.
inline constexpr size_t kMostRunsOfLevel = 100;

/// The base side, and what runs of earlier levels tell of the noise between runs.
struct BaseChoice {
    std::vector<RunSummary> runs;  // of the newest level, the newest kMostRunsOfLevel
    BaselineHistory history;
    EarlierNoise noise;
    double confidence = kLevelConfidence;  // of the interval of what is compared with it
};

/// `baseline`: as sortByTime() leaves it. `across`: differences that make no other kind. Where the baseline holds no
/// run of the new runs' kind, those of its newest kind are taken: why they cannot be compared is said of them.
/// `threshold`: of the gate, a share: a growth that is smaller in all is no drift. O(entries^2) at worst.
BaseChoice chooseBase(std::vector<RunSummary> baseline, const std::vector<RunSummary>& now,
                      const std::set<std::string>& across, double threshold = StepTimeOptions{}.threshold);

/// Runs of one kind in time: those saved together under one label are an entry, and entries make levels.
struct BaselineTimeline {
    struct Entry {
        size_t firstRun = 0, runs = 0;
        double stepNs = 0;  // mean of its runs that are like the others
        size_t level = 0;
        bool beginsLevel = false;  // as one of its runs says
    };
    std::vector<Entry> entries;
    std::vector<BaselineLevel> levels;
    double noise = 0;                 // standard deviation of the logarithm of a run's step
    bool hasPairs = false;            // an entry has two runs that count, so that `noise` is what runs differ by
    std::vector<LeftOutRun> leftOut;  // that do not count
    EarlierNoise withinLevels;        // what the runs that count differ by from their level
};

/// `runs`: of one kind, as sortByTime() leaves them, each with a step.
BaselineTimeline timelineOf(const std::vector<RunSummary>& runs);

/// Where levels begin: 0 and the change points of entries with these values and weights (runs), ascending. `noise`: the
/// standard deviation of one run; above 0. `forced`: entries that begin a level whatever the values say.
std::vector<size_t> levelStarts(const std::vector<double>& values, const std::vector<double>& weights, double noise,
                                const std::vector<bool>& forced);

}  // namespace rankscope::compare

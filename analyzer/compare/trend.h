// SPDX-License-Identifier: Apache-2.0
// What a baseline tells of the months it was filled in: for each kind of job its entries in time, the levels of the
// step, and the findings that came and went.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"

namespace rankscope::compare {

/// A finding of at least half of an entry's runs.
struct TrendFinding {
    std::string id, title, where;    // `where`: "ranks 0-3"; empty: all ranks
    std::optional<double> savingNs;  // of a step, middle of the runs that know it; empty: none does
};

struct TrendRun {
    std::string name;
    double stepNs = 0;  // its typical step
};

/// Runs that were saved under one label, one after the other; each run by itself where they have none.
struct TrendEntry {
    std::string label;  // empty: none
    std::optional<int64_t> startUnixNs;
    double stepNs = 0;         // of its runs that count
    size_t level = 0;          // index into TrendOfKind::levels
    bool beginsLevel = false;  // a change of the step up to here was accepted (`baseline accept`)
    std::vector<TrendRun> runs;
    std::vector<TrendFinding> findings;
    std::vector<TrendFinding> came, went;  // against the entry before; of the first none
};

/// The runs of one kind of job: those that can be compared with each other.
struct TrendOfKind {
    std::string name;                                // "4 ranks, dp4, virtual GPUs"
    std::map<std::string, std::string> environment;  // of its newest run
    std::optional<double> noise;                     // standard deviation of a run, share of the step; empty: no entry
                                                     // has two runs that count
    std::vector<BaselineLevel> levels;               // oldest first
    std::vector<TrendEntry> entries;                 // oldest first
    std::vector<LeftOutRun> leftOut;                 // runs that are not like the others of their entry

    /// The newest level's step over the one before; empty: there is only one.
    std::optional<double> lastRatio() const;
    /// The entry that began the newest level.
    const TrendEntry& newestMove() const;
    /// The newest level's step over the oldest one's; 1 where there is only one.
    double ratio() const { return levels.back().stepNs / levels.front().stepNs; }
};

struct Trend {
    std::string baseline;  // its folder, as it was named
    int runs = 0;
    int withoutSteps = 0;            // runs left out: they have no step
    std::vector<TrendOfKind> kinds;  // that of the newest run first; no kind is empty
};

/// `runs`: of a baseline, as readBaseline() gives them. O(entries^2) at worst.
Trend trendOf(const std::string& baseline, const std::vector<RunSummary>& runs);

/// "the step is 163 ms, for 4 entries now: 10 % slower than the level before, 4.6 % slower than the oldest level": one
/// sentence without a full stop.
std::string trendSentence(const TrendOfKind& kind);

/// A slower level of at least that much is told as one: a smaller change is none for `compare` either.
inline constexpr double kLeastMove = 0.01;

std::string renderTrendJson(const Trend& trend);  // rankscope.trend/1
/// `last`: entries that are listed, the youngest of each kind.
std::string renderTrendText(const Trend& trend, size_t last, bool colour = false);
/// A page of its own that needs nothing beside it, as renderHtml() makes them.
std::string renderTrendHtml(const Trend& trend);
/// A badge for a README: the newest step of the first kind and how far it is from the level before. SVG.
std::string renderTrendBadge(const Trend& trend);

}  // namespace rankscope::compare

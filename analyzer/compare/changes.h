// SPDX-License-Identifier: Apache-2.0
// What changed besides the step time, and why. Secondary numbers say where to look; they do not decide.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Compares each metric that some run has. A change is significant when its p value, corrected by Holm for the number
/// of metrics tested, is under 5 % and it is at least kWorthSaying of the step (times), of the whole (shares) or of
/// itself (others). The test is Student's on the runs, or the exact rank test where there are runs enough for it to
/// pass the correction. `categoriesRefused` and `timesRefused`: why what rests on device records, and what is no share,
/// is not compared; empty: it is.
std::vector<MetricChange> compareMetrics(const std::vector<RunSummary>& base, const std::vector<RunSummary>& now,
                                         const std::string& categoriesRefused, const std::string& timesRefused);

/// Share of what a change is measured by, under which a sure one is not called significant: nobody acts on less.
inline constexpr double kWorthSaying = 0.01;

/// Holm's step-down correction: p values that may be compared with the level as they are. NaN stays NaN and does not
/// count.
std::vector<double> holm(std::vector<double> pValues);

/// Means over the ranks that take part, per step; most time first.
std::vector<CollectiveChange> compareCollectives(const SideMeans& base, const SideMeans& now);

/// Means over ranks, per step; largest change first.
std::vector<KernelChange> compareKernels(const SideMeans& base, const SideMeans& now);

/// Tells where a step of each rank goes on both sides, matched by role; by rank of the new side. A role that one side
/// lacks has that side empty.
std::vector<BreakdownChange> compareBreakdowns(const SideMeans& base, const SideMeans& now);

/// Compares the findings of both sides, matched by diagnosis and the roles of their ranks: by what their repairs save
/// where both sides could play them, else by what they cost. A finding is on a side when at least half of its runs have
/// it; where costs are compared, runs of which only its small saving made a note have it, too. One that is on one side
/// only, but comes to about the same on the other as a note under the floor, is not new but the same: thresholds must
/// not make news. What is not known is neither worse nor better. One that fewer than half of the new runs have, and the
/// base has not, is present; so is every one when `base` has no run. New, worse, gone, better, present, same; inside,
/// by what they come to.
std::vector<FindingChange> compareFindings(const SideMeans& base, const SideMeans& now);

inline constexpr double kOtherCost = 0.25;       // share of the larger cost: by less than that a finding is the same
inline constexpr double kOtherStepShare = 0.01;  // of the step: the same

/// One number of one run.
struct MetricValue {
    std::string name;
    const char* unit = "ns";
    bool higherIsBetter = false;
    bool byCategory = true;  // rests on device records of all categories; false: on the steps alone
    double value = 0;
};

/// Lists the numbers of a run by unique name, always in the same order. Times are per step, means over ranks.
std::vector<MetricValue> metricsOf(const RunSummary& run);

/// "on the critical path", or where a side has none "of the rank that waits least": what the rows are differences of.
std::string_view attributionScope(const std::vector<AttributionRow>& rows);

/// Differences of the two critical paths by what they are in (waiting is no part of a critical path: the time is where
/// the one is that is waited for). Where a side could not be replayed, differences of the categories of the rank that
/// waits least on the new side. Both are of mean steps: what `changeNs`, of typical ones, differs by from the change of
/// the means is a row of category `rest`, and so is what nothing explains. Largest first.
std::vector<AttributionRow> attributeChange(const SideMeans& base, const SideMeans& now, double changeNs);

/// Names the ranks whose own time grew by far more than that of the middle one; all of them (empty) where none stands
/// out.
std::vector<std::string> rolesThatGrew(const SideMeans& base, const SideMeans& now, double RoleSummary::*part,
                                       bool shrank = false);

/// "rank 3 (dp 3)", "ranks 4-7 (stage 1)"; empty roles: "all ranks". Fills `ranks` with their numbers on that side.
std::string placeText(const SideMeans& side, const std::vector<std::string>& roles, std::vector<int>& ranks);

/// A cause for each part of the change that is worth one: `attribution` says how large the parts are, `findings` what
/// their diagnoses cost. Of a faster step the causes are told with the sides changed over, what was lost before and is
/// not any more, and their `ns` is negative. Causes of one kind and the same ranks are one, which names its places.
/// Largest first; one of kind `unknown` where nothing tells. `changeNs` is not zero.
std::vector<ChangeCause> whyChanged(const SideMeans& base, const SideMeans& now,
                                    const std::vector<FindingChange>& findings, double changeNs);

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
// Entry: two sides of summaries become a comparison, and a comparison passes a gate or fails it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analyzer/compare/comparability.h"
#include "analyzer/compare/comparison.h"
#include "analyzer/compare/run_summary.h"
#include "analyzer/compare/step_time.h"

namespace rankscope::compare {

struct GateOptions {
    std::vector<std::string> failOn = {
        "regression"};               // regression | new-finding | undecided | no-baseline | incomparable | never | a
                                     // diagnosis or a pattern of it: RS203, RS2*, finding:RS203
    std::vector<std::string> allow;  // diagnoses, or patterns, that fail nothing
};

/// Says what is wrong with a word of failOn or allow; empty: nothing. Checked against the catalogue.
std::string checkFailOn(const std::string& word);
std::string checkAllow(const std::string& word);

/// `regression`, `no-baseline`, `incomparable`: the verdict is that. `undecided`: it is `undecided` or `not enough
/// samples`. `new-finding`: a finding is new; of sides that must not be compared nothing tells that. A diagnosis: one
/// new run or more have it, new or not. `never` fails nothing, whatever else is named. A regression that does not fail
/// is a notice. Marks allowed and failing findings in `comparison`.
GateResult judgeGate(Comparison& comparison, const GateOptions& options);

struct CompareOptions {
    StepTimeOptions step;
    GateOptions gate;
    std::set<std::string> across;   // acrossNames(): differences that do not forbid to compare
    double samples = 1;             // of a new step for each of a base step: times are compared for as many samples
    std::string sample = "sample";  // what a reader calls one
    std::optional<BaselineHistory> history;  // of a base side that was chosen from a baseline (baseline_level.h)
};

/// Compares all of it, however much there is: each format says what it leaves out. A run that was given twice on a side
/// counts once; one without steps is left out; both are said. An empty base is a comparison with nothing (a notice of
/// the gate). Runs of different kinds on a side are incomparable. Throws CompareError when the new side is empty, or
/// when a side has runs but none with a step.
Comparison compareRuns(std::vector<RunSummary> base, std::vector<RunSummary> now, const CompareOptions& options);

}  // namespace rankscope::compare

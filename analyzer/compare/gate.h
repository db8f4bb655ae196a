// SPDX-License-Identifier: Apache-2.0
// Whether a comparison fails a build.
#pragma once

#include <string>
#include <vector>

#include "analyzer/compare/comparison.h"

namespace rankscope::compare {

struct GateOptions {
    std::vector<std::string> failOn = {
        "regression"};               // regression | new-finding | never | a diagnosis or a pattern of it: RS203, RS2*
    std::vector<std::string> allow;  // diagnoses, or patterns, that fail nothing
};

/// What is wrong with a word of failOn or allow; empty: nothing. Checked against the catalogue.
std::string checkFailOn(const std::string& word);
std::string checkAllow(const std::string& word);

/// `regression`: the step time is a regression. `new-finding`: a finding is new. A diagnosis: one new run or more have
/// it, new or not. A regression that does not fail is a notice. Sides that must not be compared are not judged. Marks
/// allowed findings in `comparison`.
GateResult judgeGate(Comparison& comparison, const GateOptions& options);

}  // namespace rankscope::compare

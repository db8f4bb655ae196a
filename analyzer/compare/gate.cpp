// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "analyzer/compare/compare.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/text/lists.h"

namespace rankscope::compare {
namespace {

bool matches(const std::string& pattern, const std::string& id) {
    return fnmatch(pattern.c_str(), id.c_str(), 0) == 0;
}

bool anyMatches(const std::vector<std::string>& patterns, const std::string& id) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, id); });
}

std::string describe(const FindingChange& finding) {
    return fmt::format("{} {} on {}{}: {}", finding.id, finding.title, finding.where, inRunsText(finding),
                       finding.cause);
}

void judgeFinding(FindingChange& finding, const GateOptions& options, GateResult& gate) {
    const bool present = finding.now.runs > 0;
    const bool asNew = text::contains(options.failOn, "new-finding") && finding.status == FindingStatus::isNew;
    const bool asDiagnosis = present && anyMatches(options.failOn, finding.id);
    finding.allowed = anyMatches(options.allow, finding.id);
    if (!asNew && !asDiagnosis) return;
    finding.failed = !finding.allowed;
    if (finding.allowed)
        gate.allowed.push_back(describe(finding));
    else
        gate.reasons.push_back((asNew ? "new finding: " : "found: ") + describe(finding));
}

}  // namespace

std::string checkAllow(const std::string& word) {
    for (const diagnose::Diagnosis* entry : diagnose::catalogue())
        if (matches(word, entry->id)) return {};
    return fmt::format("no diagnosis is called \"{}\"; `rankscope explain` lists them", word);
}

std::string checkFailOn(const std::string& word) {
    if (word == "regression" || word == "new-finding" || word == "never") return {};
    if (checkAllow(word).empty()) return {};
    return fmt::format(
        "\"{}\" is neither regression, new-finding, never nor a diagnosis such as RS203 or RS2*; `rankscope explain` "
        "lists them",
        word);
}

GateResult judgeGate(Comparison& comparison, const GateOptions& options) {
    GateResult gate;
    gate.failOn = options.failOn;
    for (FindingChange& finding : comparison.findings) judgeFinding(finding, options, gate);
    const bool isSlower = comparison.step.verdict == StepVerdict::regression;
    if (text::contains(options.failOn, "regression")) {
        if (isSlower) gate.reasons.insert(gate.reasons.begin(), comparison.step.reason);
        if (comparison.step.verdict == StepVerdict::notEnoughSamples)
            gate.notices.push_back("the gate cannot tell a regression: " + comparison.step.reason);
    } else if (isSlower) {
        gate.notices.push_back(fmt::format("not failed, as --fail-on {} does not name regression: {}",
                                           fmt::join(options.failOn, ","), comparison.step.reason));
    }
    if (text::contains(options.failOn, "never")) {
        for (std::string& reason : gate.reasons)
            gate.notices.push_back("not failed, as asked (--fail-on never): " + std::move(reason));
        gate.reasons.clear();
        for (FindingChange& finding : comparison.findings) finding.failed = false;
    }
    gate.failed = !gate.reasons.empty();
    gate.judged = gate.failed || comparison.step.verdict != StepVerdict::incomparable;
    if (!gate.judged) gate.notices.push_back("nothing is known of a regression: " + comparison.step.reason);
    return gate;
}

}  // namespace rankscope::compare

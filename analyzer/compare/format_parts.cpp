// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/format_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/report/units.h"

namespace rankscope::analyzer {

std::string signedDurationText(double ns) { return (ns < 0 ? "-" : "+") + durationText(std::abs(ns)); }

std::string signedPercentText(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string findingName(const FindingChange& finding) {
    std::string name = finding.id + " " + finding.title;
    return finding.where.empty() ? name : name + ", " + finding.where;
}

std::string findingBody(const FindingChange& finding) {
    std::string text = finding.cause + ".";
    if (finding.baseCostNs && finding.newCostNs)
        text += fmt::format("\nIt costs {} of each step; it was {}.", durationText(*finding.newCostNs), durationText(*finding.baseCostNs));
    else if (finding.newCostNs)
        text += fmt::format("\nIt costs {} of each step.", durationText(*finding.newCostNs));
    else if (finding.baseCostNs)
        text += fmt::format("\nIt cost {} of each step.", durationText(*finding.baseCostNs));
    if (const std::string runs = inRunsText(finding); !runs.empty()) text += fmt::format("\nIt is {}.", runs.substr(2));
    for (const std::string& fix : finding.fix) text += "\nFix: " + fix;
    return text;
}

std::string inRunsText(const FindingChange& finding) {
    return finding.newRuns > 0 && finding.newRuns < finding.ofNewRuns ? fmt::format(", in {} of {} new runs", finding.newRuns, finding.ofNewRuns) : std::string();
}

std::string_view gateWord(const GateResult& gate) { return gate.failed ? "failed" : gate.judged ? "passed" : "not judged"; }

bool isTrouble(const FindingChange& finding) { return finding.status == FindingStatus::isNew || finding.status == FindingStatus::worse; }

bool failsGate(const Comparison& comparison, const FindingChange& finding) { return comparison.gate.failed && finding.failed; }

bool stepFailsGate(const Comparison& comparison) {
    return comparison.gate.failed && comparison.step.verdict == StepVerdict::regression && std::ranges::count(comparison.gate.failOn, "regression") != 0;
}

std::vector<const FindingChange*> firstFindings(const Comparison& comparison, size_t most) {
    std::vector<const FindingChange*> findings;
    for (const FindingChange& finding : comparison.findings) findings.push_back(&finding);
    const auto place = [](const FindingChange* f) { return std::pair(f->failed ? 0 : 1, isTrouble(*f) ? 0 : f->status == FindingStatus::same || f->status == FindingStatus::present ? 2 : 1); };
    std::ranges::stable_sort(findings, {}, place);
    if (findings.size() > most) findings.resize(most);
    return findings;
}

std::string leftOutText(const Comparison& comparison, size_t most) {
    const size_t all = comparison.findings.size();
    return all > most ? fmt::format("{} of {} findings are left out: --format json has all", all - most, all) : std::string();
}

}  // namespace rankscope::analyzer

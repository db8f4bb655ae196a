// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/format_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/text/units.h"

namespace rankscope::compare {

std::string signedDurationText(double ns) {
    return (ns < 0 ? "-" : "+") + text::durationText(std::abs(ns));
}

std::string signedPercentText(double share) {
    return fmt::format("{:+.1f} %", 100 * share);
}

std::string findingName(const FindingChange& finding) {
    std::string name = finding.id + " " + finding.title;
    return finding.where.empty() ? name : name + ", " + finding.where;
}

std::string findingBody(const FindingChange& finding) {
    std::string text = finding.cause + ".";
    if (finding.baseCostNs && finding.newCostNs)
        text += fmt::format("\nIt costs {} of each step; it was {}.", text::durationText(*finding.newCostNs),
                            text::durationText(*finding.baseCostNs));
    else if (finding.newCostNs)
        text += fmt::format("\nIt costs {} of each step.", text::durationText(*finding.newCostNs));
    else if (finding.baseCostNs)
        text += fmt::format("\nIt cost {} of each step.", text::durationText(*finding.baseCostNs));
    if (const std::string runs = inRunsText(finding); !runs.empty()) text += fmt::format("\nIt is {}.", runs.substr(2));
    for (const std::string& fix : finding.fix) text += "\nFix: " + fix;
    return text;
}

std::string inRunsText(const FindingChange& finding) {
    return finding.newRuns > 0 && finding.newRuns < finding.ofNewRuns
               ? fmt::format(", in {} of {} new runs", finding.newRuns, finding.ofNewRuns)
               : std::string();
}

std::string costText(const FindingChange& finding) {
    if (finding.baseCostNs && finding.newCostNs)
        return fmt::format("{} -> {} a step", text::durationText(*finding.baseCostNs),
                           text::durationText(*finding.newCostNs));
    if (finding.newCostNs) return text::durationText(*finding.newCostNs) + " a step";
    return finding.baseCostNs ? text::durationText(*finding.baseCostNs) + " a step before" : std::string();
}

std::string jobText(const Comparison& comparison) {
    const auto known = [](const ComparedSide& side, const char* key) {
        const auto value = side.environment.find(key);
        return value == side.environment.end() ? std::string() : value->second;
    };
    const auto common = [&](const char* key) {
        const std::string value = known(comparison.now, key);
        return comparison.base.runs.empty() || known(comparison.base, key) == value ? value : std::string();
    };
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (const std::string ranks = common("world_size"); !ranks.empty())
        add(ranks + (ranks == "1" ? " rank" : " ranks"));
    if (const std::string layout = common("layout"); !layout.empty()) add(layout);
    if (const std::string gpu = common("gpu"); !gpu.empty()) add(gpu);
    if (common("virtual") == "yes") add("virtual GPUs");
    if (const std::string nccl = common("nccl"); !nccl.empty()) add("NCCL " + nccl);
    if (const std::string cuda = common("cuda"); !cuda.empty()) add("CUDA " + cuda);
    return text;
}

bool showsAttribution(const Comparison& comparison) {
    const auto& interval = comparison.step.interval;
    const bool isSure = interval && (interval->low > 1 || interval->high < 1);
    const bool tells =
        std::ranges::any_of(comparison.attribution, [](const AttributionRow& row) { return row.category != "rest"; });
    return tells && (isSure || !comparison.causes.empty());
}

std::string gateLineText(const Comparison& comparison, const std::string& line) {
    const std::string& verdict = comparison.step.reason;
    if (line == verdict && comparison.step.verdict == StepVerdict::regression) return "the step time is a regression";
    return !verdict.empty() && line.ends_with(": " + verdict) ? line.substr(0, line.size() - verdict.size() - 2) : line;
}

std::string_view gateWord(const GateResult& gate) {
    return gate.failed ? "failed" : gate.judged ? "passed" : "not judged";
}

bool isTrouble(const FindingChange& finding) {
    return finding.status == FindingStatus::isNew || finding.status == FindingStatus::worse;
}

bool failsGate(const Comparison& comparison, const FindingChange& finding) {
    return comparison.gate.failed && finding.failed;
}

bool stepFailsGate(const Comparison& comparison) {
    return comparison.gate.failed && comparison.step.verdict == StepVerdict::regression &&
           std::ranges::count(comparison.gate.failOn, "regression") != 0;
}

std::vector<const FindingChange*> firstFindings(const Comparison& comparison, size_t most) {
    std::vector<const FindingChange*> findings;
    for (const FindingChange& finding : comparison.findings) findings.push_back(&finding);
    const auto place = [](const FindingChange* f) {
        return std::pair(f->failed ? 0 : 1, isTrouble(*f) ? 0
                                            : f->status == FindingStatus::same || f->status == FindingStatus::present
                                                ? 2
                                                : 1);
    };
    std::ranges::stable_sort(findings, {}, place);
    if (findings.size() > most) findings.resize(most);
    return findings;
}

std::string leftOutText(const Comparison& comparison, size_t most) {
    const size_t all = comparison.findings.size();
    return all > most ? fmt::format("{} of {} findings are left out: --format json has all", all - most, all)
                      : std::string();
}

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

/// Prints two significant digits at least: 0.53 %, 3.2 %, 12 %.
std::string percent(double share) {
    const double size = std::abs(100 * share);
    if (size >= 9.95) return fmt::format("{:.0f} %", 100 * share);
    return size >= 0.995 ? fmt::format("{:.1f} %", 100 * share) : fmt::format("{:.2f} %", 100 * share);
}

std::string runsToAdd(const StepTimeChange& step) {
    if (step.moreRuns <= 0) return "noise between runs is too large for more runs to help: make runs longer or quieter";
    return fmt::format("run {} more on each side", step.moreRuns);
}

/// A change that is sure, but too small for the threshold, is said to be one.
std::string smallChange(const StepTimeChange& step) {
    const bool slower = step.interval && step.interval->low > 1, faster = step.interval && step.interval->high < 1;
    return slower || faster
               ? fmt::format("{}, under the threshold of {}", slower ? "slower" : "faster", percent(step.threshold))
               : "no change";
}

/// Is as precise as the interval beside it, which is printed in tenths of a percent.
std::string changeBeside(double change) {
    const std::string size = fmt::format("{:.1f} %", 100 * std::abs(change));
    return size == "0.0 %" ? "the same" : size + (change >= 0 ? " slower" : " faster");
}

/// Beyond twice the step a number only says that nothing is known.
std::string slowDown(double share) {
    return share > 1 ? "a slow-down to more than twice the step" : "a slow-down of " + percent(share);
}

/// Says how the mean of all steps changed; empty: not by more than would have been seen of the typical one.
std::string meanText(const StepTimeChange& step) {
    if (!step.meanRatio || std::abs(std::log(*step.meanRatio)) <= std::log1p(*step.smallestVisible)) return {};
    return fmt::format(" of the typical step; the mean of all steps, also those far from the typical one, is {} {}",
                       percent(std::abs(*step.meanRatio - 1)), *step.meanRatio > 1 ? "slower" : "faster");
}

/// How often a regression of the size that matters is found; empty: what would have been seen is smaller.
std::string detectionText(const StepTimeChange& step) {
    if (!step.detection || step.isClaim() || *step.smallestVisible <= step.detection->size) return {};
    const Detection& detection = *step.detection;
    const auto ofHundred = [](double share) { return static_cast<int>(std::floor(100 * share)); };
    std::string text = fmt::format("; a regression of {} is found in {} of 100 such comparisons",
                                   percent(detection.size), ofHundred(detection.found));
    if (detection.found < kFoundWell && detection.enoughRuns > 0)
        text += fmt::format(", in {} with {} runs of each build in place of {}", ofHundred(kFoundWell),
                            detection.enoughRuns, detection.runs);
    return text;
}

}  // namespace

std::string smallestVisibleText(double share) {
    return share > 1 ? "more than twice" : percent(share);
}

std::string changeText(const StepTimeChange& step) {
    if (!step.ratio) return "unknown";
    const double change = *step.ratio - 1;
    if (!step.interval)
        return change == 0 ? "the same"
                           : fmt::format("{} {}", percent(std::abs(change)), change >= 0 ? "slower" : "faster");
    return fmt::format("{} ({:+.1f} % to {:+.1f} %)", changeBeside(change), 100 * (step.interval->low - 1),
                       100 * (step.interval->high - 1));
}

std::string noiseSentence(const StepTimeChange& step) {
    if (!step.betweenRuns) return {};
    std::string text =
        fmt::format("runs of a side differ by {} (told by the {})", percent(*step.betweenRuns), step.noiseSource);
    const bool isSaidAlready = step.verdict == StepVerdict::noChange || step.verdict == StepVerdict::notEnoughSamples;
    if (step.smallestVisible && !isSaidAlready)
        text += fmt::format("; {} would have been seen", slowDown(*step.smallestVisible));
    return text + detectionText(step);
}

std::string verdictSentence(const StepTimeChange& step) {
    if (!step.baseNs || !step.newNs) return step.reason;
    std::string times =
        fmt::format("{} -> {} {}, {}", text::durationText(*step.baseNs), text::durationText(*step.newNs),
                    step.samples == 1 ? "a step" : "for as many samples", changeText(step));
    if (step.samples != 1)
        times += fmt::format("; a step takes {} for {:.4g} times the samples", text::durationText(*step.newStepNs()),
                             step.samples);
    switch (step.verdict) {
        case StepVerdict::regression:
        case StepVerdict::improvement:
            return fmt::format(
                "{}: {}{}", toText(step.verdict), times,
                step.byRareSteps ? "; by rare slow steps, in the mean of all steps: not in the typical step" : "");
        case StepVerdict::noChange:
            return fmt::format("{}: {}; {} would have been seen{}", smallChange(step), times,
                               slowDown(*step.smallestVisible), meanText(step));
        case StepVerdict::notEnoughSamples:
            if (!step.lacking.empty())
                return fmt::format("not enough samples: {}; {}{}", times, step.lacking,
                                   step.moreRuns > 0 ? ": " + runsToAdd(step) : "");
            return fmt::format("not enough samples: {}; only {} would have been seen: {}", times,
                               slowDown(*step.smallestVisible), runsToAdd(step));
        case StepVerdict::undecided:
        case StepVerdict::noBaseline:
        case StepVerdict::incomparable:
            break;
    }
    return step.reason;
}

std::string causesHeading(const Comparison& comparison) {
    return comparison.step.isClaim() ? "Why" : "Why, if it is more than noise";
}

std::string metricText(double value, const std::string& unit) {
    if (unit == "ns") return text::durationText(value);
    if (unit == "share") return text::percentText(value);
    if (unit == "bytes") return text::bytesText(value);
    if (unit == "bytes/s") return text::bandwidthText(value);
    return std::abs(value) >= 100 ? fmt::format("{:.0f} {}", value, unit) : fmt::format("{:.3g} {}", value, unit);
}

std::string metricChangeText(double base, double now, const std::string& unit) {
    if (base == 0 && unit != "share") return now == 0 ? "none" : "from nothing";
    const double change = unit == "share" ? now - base : now / base - 1;
    const std::string number = fmt::format("{:+.{}f}", 100 * change, std::abs(change) < 1 ? 1 : 0);
    return (number == "+0.0" || number == "-0.0" ? "0.0" : number) + (unit == "share" ? " points" : " %");
}

std::vector<const MetricChange*> comparedMetrics(const Comparison& comparison) {
    std::vector<const MetricChange*> rows;
    for (const MetricChange& metric : comparison.metrics)
        if (metric.base && metric.now) rows.push_back(&metric);
    std::ranges::stable_sort(rows, {}, [](const MetricChange* metric) { return !metric->significant; });
    return rows;
}

std::string metricChangeText(const MetricChange& metric) {
    return metric.refused.empty() ? metricChangeText(*metric.base, *metric.now, metric.unit) : "";
}

std::string metricVerdict(const MetricChange& metric) {
    if (!metric.refused.empty()) return "not compared";
    if (!metric.significant) return "";
    return metric.higherIsBetter == (*metric.now > *metric.base) ? "better" : "worse";
}

std::vector<AttributionRow> foldedParts(std::vector<AttributionRow> rows, size_t most) {
    if (rows.size() <= most) return rows;
    AttributionRow rest{StepPart::rest, fmt::format("{} smaller parts", rows.size() - most)};
    for (const AttributionRow& row : std::span(rows).subspan(most)) rest.ns += row.ns;
    rows.resize(most);
    rows.push_back(std::move(rest));
    return rows;
}

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
    if (const std::string worth = worthText(finding); !worth.empty())
        text += (finding.bySaving() ? "\nI" + worth.substr(1) : "\nIt " + worth) + ".";
    if (const std::string runs = inRunsText(finding); !runs.empty()) text += fmt::format("\nIt is {}.", runs.substr(2));
    for (const std::string& fix : finding.fix) text += "\nFix: " + fix;
    return text;
}

std::string inRunsText(const FindingChange& finding) {
    return finding.now.runs > 0 && finding.now.runs < finding.now.ofRuns
               ? fmt::format(", in {} of {} new runs", finding.now.runs, finding.now.ofRuns)
               : std::string();
}

std::string worthText(const FindingChange& finding) {
    const FindingSide &base = finding.base, &now = finding.now;
    const auto &before = finding.worthNs(base), &after = finding.worthNs(now);
    const auto time = [](const std::optional<double>& ns) { return ns ? text::durationText(*ns) : "unknown"; };
    std::string text = finding.bySaving() ? "its repair saves " : "costs ";
    if (base.isThere && now.isThere) {
        if (!before && !after) return {};
        text += fmt::format("{} -> {} a step", time(before), time(after));
        if (before && after && base.savingNs.has_value() != now.savingNs.has_value())
            text +=
                fmt::format("; what its repair saves was not played on the {} side", base.savingNs ? "new" : "base");
        return text;
    }
    if (!(now.isThere ? after : before)) return {};
    return text + (now.isThere ? time(after) + " a step" : time(before) + " a step before");
}

std::string worthText(const FindingChange& finding, const FindingSide& side) {
    if (!side.isThere) return "none";
    const auto& ns = finding.worthNs(side);
    return ns ? (finding.bySaving() ? "saves " : "costs ") + text::durationText(*ns) : "unknown";
}

std::string sideName(const ComparedSide& side) {
    if (side.runs.empty()) return "no run";
    const ComparedRun &first = side.runs.front(), &last = side.runs.back();
    if (std::ranges::none_of(side.runs, [](const ComparedRun& run) { return run.label.empty(); }))
        return first.label == last.label ? first.label : fmt::format("{} to {}", first.label, last.label);
    return side.runs.size() == 1 ? first.name : fmt::format("{} and {} more", first.name, side.runs.size() - 1);
}

std::string titleText(const Comparison& comparison) {
    return fmt::format("{} against {}", sideName(comparison.now), sideName(comparison.base));
}

std::string jobText(const Comparison& comparison) {
    const auto common = [&](const char* key) {
        const std::string value = text::valueAt(comparison.now.environment, key);
        const bool isCommon = comparison.base.runs.empty() || text::valueAt(comparison.base.environment, key) == value;
        return isCommon ? value : "";
    };
    const auto after = [](const char* word, const std::string& value) { return value.empty() ? value : word + value; };
    const std::string ranks = common("world_size");
    std::vector<std::string> parts{ranks.empty() ? "" : ranks + (ranks == "1" ? " rank" : " ranks"),
                                   common("layout"),
                                   common("gpu"),
                                   common("virtual") == "yes" ? "virtual GPUs" : "",
                                   after("NCCL ", common("nccl")),
                                   after("CUDA ", common("cuda"))};
    std::erase(parts, "");
    return text::joined(parts);
}

bool showsAttribution(const Comparison& comparison) {
    const auto& interval = comparison.step.interval;
    const bool isSure = interval && (interval->low > 1 || interval->high < 1);
    const bool tells = std::ranges::any_of(comparison.attribution,
                                           [](const AttributionRow& row) { return row.part != StepPart::rest; });
    return tells && (isSure || !comparison.causes.empty());
}

std::string gateLineText(const Comparison& comparison, const std::string& line) {
    const std::string& verdict = comparison.step.reason;
    if (line == verdict && comparison.step.verdict == StepVerdict::regression) return "the step time is a regression";
    if (line == verdict && comparison.step.verdict != StepVerdict::noBaseline)
        return fmt::format("the step time is {}", comparison.step.isOpen() ? "undecided" : "incomparable");
    return !verdict.empty() && line.ends_with(": " + verdict) ? line.substr(0, line.size() - verdict.size() - 2) : line;
}

std::string causeLines(const Comparison& comparison, std::string_view between) {
    std::string lines;
    for (const ChangeCause& cause : comparison.causes)
        lines.append("\n").append(signedDurationText(cause.ns)).append(between).append(cause.text);
    return lines;
}

std::string_view gateWord(const GateResult& gate) {
    return toText(gate.conclusion);
}

bool isTrouble(const FindingChange& finding) {
    return finding.status == FindingStatus::isNew || finding.status == FindingStatus::worse;
}

bool failsGate(const Comparison& comparison, const FindingChange& finding) {
    return comparison.gate.failed && finding.failed;
}

bool stepFailsGate(const Comparison& comparison) {
    return text::contains(comparison.gate.reasons, comparison.step.reason);
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

std::vector<std::string> fixOf(const Comparison& comparison, const ChangeCause& cause) {
    if (cause.diagnosis.empty() || cause.ns <= 0) return {};
    const FindingChange* found = nullptr;
    for (const FindingChange& finding : comparison.findings) {
        if (finding.id != cause.diagnosis || finding.status == FindingStatus::gone) continue;
        if (!found || finding.ranks == cause.ranks) found = &finding;
    }
    return found ? found->fix : std::vector<std::string>{};
}

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/sentences.h"

#include <fmt/format.h>

#include <cmath>

#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

/// Two significant digits at least: 0.53 %, 3.2 %, 12 %.
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

/// Beyond twice the step a number only says that nothing is known.
bool isBeyondWords(double share) {
    return share > 1;
}

/// As precise as the interval beside it, which is printed in tenths of a percent.
std::string changeBeside(double change) {
    const std::string size = fmt::format("{:.1f} %", 100 * std::abs(change));
    return size == "0.0 %" ? "the same" : size + (change >= 0 ? " slower" : " faster");
}

std::string slowDown(double share) {
    return isBeyondWords(share) ? "a slow-down to more than twice the step" : "a slow-down of " + percent(share);
}

/// The mean of all steps changed by more than would have been seen of the typical one.
bool isMeanElsewhere(const StepTimeChange& step) {
    return step.meanRatio && std::abs(std::log(*step.meanRatio)) > std::log1p(*step.smallestVisible);
}

std::string meanText(const StepTimeChange& step) {
    return fmt::format("the mean of all steps, also those far from the typical one, is {} {}",
                       percent(std::abs(*step.meanRatio - 1)), *step.meanRatio > 1 ? "slower" : "faster");
}

}  // namespace

std::vector<std::string> stepNotes(const StepTimeChange& step) {
    std::vector<std::string> notes;
    if (step.fewForExceptions && (step.verdict == StepVerdict::regression || step.verdict == StepVerdict::improvement))
        notes.push_back(
            "so few runs tell the change from noise, not from a run of another kind (another node, another clock): "
            "three on each side would");
    return notes;
}

std::string smallestVisibleText(double share) {
    return isBeyondWords(share) ? "more than twice" : percent(share);
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
    return text;
}

std::string verdictSentence(const StepTimeChange& step) {
    if (!step.baseNs || !step.newNs) return step.reason;
    const std::string times = fmt::format("{} -> {} a step, {}", text::durationText(*step.baseNs),
                                          text::durationText(*step.newNs), changeText(step));
    switch (step.verdict) {
        case StepVerdict::regression:
        case StepVerdict::improvement:
            return fmt::format(
                "{}: {}{}", toText(step.verdict), times,
                step.byRareSteps ? "; by rare slow steps, in the mean of all steps: not in the typical step" : "");
        case StepVerdict::noChange:
            return fmt::format("{}: {}; {} would have been seen{}", smallChange(step), times,
                               slowDown(*step.smallestVisible),
                               isMeanElsewhere(step) ? " of the typical step; " + meanText(step) : "");
        case StepVerdict::notEnoughSamples:
            if (!step.lacking.empty())
                return fmt::format("not enough samples: {}; {}{}", times, step.lacking,
                                   step.moreRuns > 0 ? ": " + runsToAdd(step) : "");
            return fmt::format("not enough samples: {}; only {} would have been seen: {}", times,
                               slowDown(*step.smallestVisible), runsToAdd(step));
        case StepVerdict::incomparable:
            break;
    }
    return step.reason;
}

std::string causesHeading(const Comparison& comparison) {
    const bool claimed =
        comparison.step.verdict == StepVerdict::regression || comparison.step.verdict == StepVerdict::improvement;
    return claimed ? "Why" : "Why, if it is more than noise";
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

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/slow_since.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzer/diagnose/repairs.h"
#include "analyzer/diagnose/slow_ranks.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
namespace {

constexpr double kLeastError = 1e-9;  // what has no noise at all differs for certain

/// The best of one shape.
struct Shape {
    size_t at = 0;  // index of the first value behind the change; 0: there is none
    double t = 0;   // Student's, of the difference of the levels, or of the slope; negative where it goes down
    double left = std::numeric_limits<double>::infinity();  // sum of squares around it
    double begin = 0, end = 0;                              // of the second part: of two levels both are its mean
};

/// Two levels, of `fewest` values or more each.
Shape levelsOf(const std::vector<double>& values, size_t fewest) {
    const double centre = facts::median(values);  // squares around it lose no digits
    double all = 0, squares = 0;
    for (double value : values) {
        all += value - centre;
        squares += (value - centre) * (value - centre);
    }
    Shape best;
    double before = 0;
    for (size_t at = 1; at + fewest <= values.size(); ++at) {
        before += values[at - 1] - centre;
        if (at < fewest) continue;
        const auto here = static_cast<double>(at), later = static_cast<double>(values.size() - at);
        const double since = all - before;
        const double left = std::max(0.0, squares - before * before / here - since * since / later);
        if (left >= best.left) continue;
        const double difference = since / later - before / here;
        const double error = std::sqrt(left / (here + later - 2) * (1 / here + 1 / later));
        best = {at, difference / std::max(error, kLeastError), left, centre + since / later, centre + since / later};
    }
    return best;
}

/// A level, and from one of its values on a straight line of kFewestStepsSince values or more behind it. Least squares
/// of y = a + b x with x = max(0, i - kink); the sums over x grow by one value with each place, from the last one on.
Shape growthOf(const std::vector<double>& values) {
    const double mean = facts::mean(values);
    const auto count = static_cast<double>(values.size());
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    Shape best;
    double behind = 0, products = 0;  // sums of y, and of x y, over the values behind the kink
    for (size_t kink = values.size() - 1; kink-- > 0;) {
        behind += values[kink + 1] - mean;
        products += behind;
        const auto rising = static_cast<double>(values.size() - 1 - kink);
        if (rising < kFewestStepsSince) continue;
        const double sum = rising * (rising + 1) / 2;
        const double spread = sum * (2 * rising + 1) / 3 - sum * sum / count;
        const double slope = products / spread;
        const double left = std::max(0.0, squares - slope * products);
        if (left >= best.left) continue;
        const double error = std::sqrt(left / (count - 2) / spread);
        const double begin = mean - slope * sum / count;
        best = {kink + 1, slope / std::max(error, kLeastError), left, begin, begin + slope * rising};
    }
    return best;
}

/// Chance has as many tries as there are places: for two levels with enough values on either side, for a line with
/// enough behind its kink.
bool isByChance(const Shape& shape, size_t steps, size_t series) {
    const auto fewest = static_cast<size_t>(kFewestStepsSince);
    const auto places = static_cast<double>(steps + 1 - 2 * fewest + steps - fewest);
    const double outside = facts::studentOutside(shape.t, static_cast<double>(steps - 2));
    return outside * places * static_cast<double>(series) > kChangeByChance;
}

}  // namespace

std::optional<PaceChange> changeOfPace(const std::vector<double>& ratioPerStep, size_t series) {
    std::vector<double> known;  // a step in which nothing could be compared tells nothing
    std::vector<size_t> steps;
    for (size_t s = 0; s < ratioPerStep.size(); ++s) {
        if (ratioPerStep[s] <= 0) continue;
        known.push_back(ratioPerStep[s]);
        steps.push_back(s);
    }
    if (known.size() < 2 * static_cast<size_t>(kFewestStepsSince)) return std::nullopt;
    const Shape levels = levelsOf(known, static_cast<size_t>(kFewestStepsSince)), growth = growthOf(known);
    // A line fits three slow steps at the end better than four do: they are a level all the same, of too few.
    const bool isGradual = growth.left < levelsOf(known, 1).left;
    const Shape& shape = isGradual ? growth : levels;
    if (shape.t <= 0 || isByChance(shape, known.size(), series)) return std::nullopt;
    PaceChange change{steps[shape.at], shape.begin, shape.end, isGradual};
    if (!isGradual) {
        const auto middle = known.begin() + static_cast<std::ptrdiff_t>(shape.at);
        change.before = facts::median({known.begin(), middle});
        change.since = facts::median({middle, known.end()});
    }
    if (change.since - change.before < kSlowRatio - 1) return std::nullopt;
    const double halfway = (change.before + change.since) / 2;
    if (std::all_of(known.end() - static_cast<int>(kRecoveredSteps), known.end(),
                    [&](double ratio) { return ratio <= halfway; }))
        return std::nullopt;
    return change;
}

std::optional<SlowSince> slowSince(const job::Analysis& analysis, size_t rank) {
    const auto change = changeOfPace(analysis.kernelRatios[rank].perStep, analysis.ranks.size());
    if (!change) return std::nullopt;
    SlowSince result{*change, job::compareKernelsSince(analysis, change->firstStep)[rank]};
    return isSlow(result.since) ? std::optional(std::move(result)) : std::nullopt;
}

std::string sinceText(const job::Analysis& analysis, const std::optional<PaceChange>& change, bool isOfAllSteps) {
    if (!change) return {};
    const int step = analysis.steps[change->firstStep];
    if (change->isGradual)
        return fmt::format(" (growing from {:.2f}x in step {} to {:.2f}x)", change->before, step, change->since);
    return isOfAllSteps ? fmt::format(" ({:.2f}x from step {} on, {:.2f}x before)", change->since, step, change->before)
                        : fmt::format(" ({:.2f}x before step {})", change->before, step);
}

void tellCostSince(const job::Analysis& analysis, size_t firstStep, job::Finding& finding) {
    const int step = analysis.steps[firstStep];
    finding.evidence.facts.insert(finding.evidence.facts.begin(),
                                  fmt::format("the cost, and its share, are of the {} steps since step {}, not of all",
                                              analysis.steps.size() - firstStep, step));
    finding.evidence.numbers.emplace_back("from_step", step);
    finding.whyNotPlayed = fmt::format("a pace is played in all steps alike, and it changed with step {}", step);
}

void addChange(const job::Analysis& analysis, const std::optional<PaceChange>& change, job::Finding& finding) {
    if (!change) return;
    const int step = analysis.steps[change->firstStep];
    if (finding.meanStepNs > 0)
        tellCostSince(analysis, change->firstStep, finding);
    else
        finding.evidence.numbers.emplace_back("from_step", step);
    finding.evidence.facts.insert(
        finding.evidence.facts.begin(),
        change->isGradual
            ? fmt::format("it grows from step {} on, from {:.2f}x to {:.2f}x (the straight line that fits the steps "
                          "best, better than two levels do)",
                          step, change->before, change->since)
            : fmt::format("{:.2f}x from step {} on, {:.2f}x before it (medians)", change->since, step, change->before));
    finding.evidence.numbers.emplace_back("kernel_time_ratio_before", change->before);
    if (change->isGradual) finding.evidence.numbers.emplace_back("kernel_time_ratio_at_last", change->since);
}

std::vector<job::Change> balancedUnlessChanged(const job::Analysis& analysis, const job::Finding& finding) {
    return finding.meanStepNs > 0 ? std::vector<job::Change>() : balanced(analysis, finding);
}

}  // namespace rankscope::diagnose

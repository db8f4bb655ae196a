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

constexpr double kLeastError = 1e-9;  // levels without any noise differ for certain

struct Change {
    size_t at = 0;  // index of the first value of the second level
    double t = 0;   // Student's, of the difference of the levels; negative where the second is lower
    double left = std::numeric_limits<double>::infinity();  // sum of squares around both levels
};

/// Sum of squares around the straight line that fits best.
double leftOfLine(const std::vector<double>& values) {
    const double middle = (static_cast<double>(values.size()) - 1) / 2, mean = facts::mean(values);
    double places = 0, products = 0, squares = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        const double place = static_cast<double>(i) - middle;
        places += place * place;
        products += place * (values[i] - mean);
        squares += (values[i] - mean) * (values[i] - mean);
    }
    return std::max(0.0, squares - products * products / places);
}

/// The best place; 0 where there are too few values on either side.
Change changeOf(const std::vector<double>& values) {
    const auto fewest = static_cast<size_t>(kFewestStepsSince);
    const double centre = facts::median(values);  // squares around it lose no digits
    double all = 0, squares = 0;
    for (double value : values) {
        all += value - centre;
        squares += (value - centre) * (value - centre);
    }
    Change best;
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
        best = {at, difference / std::max(error, kLeastError), left};
    }
    return best;
}

bool isByChance(const Change& change, size_t steps, size_t ranks) {
    const auto places = static_cast<double>(steps + 1 - 2 * static_cast<size_t>(kFewestStepsSince));
    const double outside = facts::studentOutside(change.t, static_cast<double>(steps - 2));
    return outside * places * static_cast<double>(ranks) > kChangeByChance;
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
    const Change change = changeOf(known);
    if (change.at == 0 || change.t <= 0 || isByChance(change, known.size(), series)) return std::nullopt;
    if (leftOfLine(known) <= change.left) return std::nullopt;  // it grew little by little
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(change.at);
    const double before = facts::median({known.begin(), middle}), since = facts::median({middle, known.end()});
    if (since - before < kSlowRatio - 1) return std::nullopt;
    const double halfway = (before + since) / 2;
    if (std::all_of(known.end() - static_cast<int>(kRecoveredSteps), known.end(),
                    [&](double ratio) { return ratio <= halfway; }))
        return std::nullopt;
    return PaceChange{steps[change.at], before, since};
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
    return isOfAllSteps ? fmt::format(" ({:.2f}x from step {} on, {:.2f}x before)", change->since, step, change->before)
                        : fmt::format(" from step {} on ({:.2f}x before)", step, change->before);
}

void addChange(const job::Analysis& analysis, const std::optional<PaceChange>& change, job::Finding& finding) {
    if (!change) return;
    const int step = analysis.steps[change->firstStep];
    const bool isCostSince = finding.meanStepNs > 0;
    finding.evidence.facts.insert(
        finding.evidence.facts.begin(),
        fmt::format("{:.2f}x from step {} on, {:.2f}x before it (medians){}", change->since, step, change->before,
                    isCostSince ? fmt::format(". The cost, and its share, are of the {} steps since then, not of all",
                                              finding.steps.size())
                                : std::string()));
    finding.evidence.numbers.emplace_back("from_step", step);
    finding.evidence.numbers.emplace_back("kernel_time_ratio_before", change->before);
    if (isCostSince)
        finding.whyNotPlayed =
            fmt::format("the repair of a device is played in all steps alike, and it is slow from step {} on", step);
}

std::vector<job::Change> balancedUnlessChanged(const job::Analysis& analysis, const job::Finding& finding) {
    return finding.meanStepNs > 0 ? std::vector<job::Change>() : balanced(analysis, finding);
}

}  // namespace rankscope::diagnose

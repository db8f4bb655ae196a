// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/baseline_kinds.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "analyzer/compare/comparability.h"
#include "analyzer/compare/run_statistics.h"

namespace rankscope::compare {
namespace {

constexpr size_t kMostOtherRuns = 100;  // they are sorted by kind, and a few dozen tell the noise

bool isOfKind(const RunSummary& run, const std::vector<RunSummary>& now, const std::set<std::string>& across) {
    return std::ranges::any_of(now,
                               [&](const RunSummary& other) { return differencesOfKind(run, other, across).empty(); });
}

/// What runs differ by that were saved together, of jobs of each kind.
EarlierNoise noiseOfKinds(std::vector<RunSummary> runs, const std::set<std::string>& across) {
    EarlierNoise noise;
    while (!runs.empty()) {
        const std::vector<RunSummary> first{runs.front()};
        const auto others = std::stable_partition(runs.begin(), runs.end(),
                                                  [&](const RunSummary& run) { return isOfKind(run, first, across); });
        const std::vector<RunSummary> kind(runs.begin(), others);
        std::vector<BaselineEntry> entries = entriesOf(kind);
        leaveOutOddRuns(kind, entries);
        const EarlierNoise own = noiseWithinEntries(entries);
        noise.squares += own.squares;
        noise.degrees += own.degrees;
        runs.erase(runs.begin(), others);
    }
    return noise;
}

double varianceOf(const EarlierNoise& noise) {
    return std::max(kNoiseFloor * kNoiseFloor, noise.squares / noise.degrees);
}

}  // namespace

EarlierNoise leaveOutOtherKinds(std::vector<RunSummary>& runs, const std::vector<RunSummary>& now,
                                const std::set<std::string>& across, BaselineHistory& history) {
    const auto others = std::stable_partition(runs.begin(), runs.end(),
                                              [&](const RunSummary& run) { return isOfKind(run, now, across); });
    std::vector<RunSummary> left(std::make_move_iterator(others), std::make_move_iterator(runs.end()));
    runs.erase(others, runs.end());
    if (left.empty()) return {};
    history.otherKinds = static_cast<int>(left.size());
    if (runs.empty()) {
        const std::vector<RunSummary> newest{left.back()};
        std::erase_if(left, [&](const RunSummary& run) { return !isOfKind(run, newest, across); });
        runs = std::move(left);
        history.hasKind = false;
        return {};
    }
    history.otherKindIs = differencesOfKind(left.front(), now.front(), across).front();
    left.erase(left.begin(), left.end() - static_cast<std::ptrdiff_t>(std::min(left.size(), kMostOtherRuns)));
    return noiseOfKinds(std::move(left), across);
}

EarlierNoise addedByOtherKinds(const EarlierNoise& own, const EarlierNoise& others) {
    const double degrees = std::min(others.degrees, kEnoughDegrees - own.degrees);
    if (degrees <= 0) return {};
    const double variance = varianceOf(others);
    if (own.degrees > 0 && differByMoreThanChance(varianceOf(own), own.degrees, variance, others.degrees)) return {};
    return {variance * degrees, degrees};
}

RunNoise noiseOfRuns(const std::vector<BaselineEntry>& entries, const EarlierNoise& others) {
    const EarlierNoise own = noiseWithinEntries(entries), added = addedByOtherKinds(own, others);
    const double degrees = own.degrees + added.degrees;
    if (added.degrees <= 0 || degrees < kFewestDegrees) return noiseOfRuns(entries);
    return {std::max(kNoiseFloor, std::sqrt((own.squares + added.squares) / degrees)), degrees};
}

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/baseline_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "analyzer/compare/odd_runs.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/compare/step_time.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

// Of the difference of two values of one normal distribution, half of the amounts are below so many of its standard
// deviations: sqrt(2) times the normal distribution's quartile.
constexpr double kMiddleDifference = 1.4142135623730951 * 0.6744897501960817;
// So many pairs have a middle that one bad run does not make: of three entries of three runs it is in 6 of 27.
constexpr size_t kFewestPairs = 9;

double middleNoise(std::vector<double> differences) {
    return std::max(kNoiseFloor, facts::median(std::move(differences)) / kMiddleDifference);
}

/// By neighbouring entries.
RunNoise noiseOfNeighbours(const std::vector<BaselineEntry>& entries) {
    // The middle of the amounts of n normal values tells their deviation as 0.37 n values do that are squared
    // (Rousseeuw and Croux, JASA 88, 1993), and neighbouring differences share an entry: drawn, it is this much.
    constexpr double kWorthOfADifference = 0.25;
    std::vector<double> differences;
    for (size_t i = 1; i < entries.size(); ++i)
        differences.push_back(std::abs(entries[i].value() - entries[i - 1].value()));
    const double degrees = kWorthOfADifference * static_cast<double>(differences.size());
    return {differences.empty() ? kNoiseFloor : middleNoise(std::move(differences)), std::max(kFewestDegrees, degrees)};
}

}  // namespace

double BaselineEntry::value() const {
    return std::accumulate(logs.begin(), logs.end(), 0.0) / weight();
}

void sortByTime(std::vector<RunSummary>& runs) {
    // Entries that were saved at once by two builds have one place in the order: each stays together.
    std::map<std::pair<int64_t, std::string>, int64_t> begins;
    for (const RunSummary& run : runs) {
        const auto [begin, isNew] = begins.try_emplace({run.savedOrder, run.label}, run.startUnixNs);
        begin->second = std::min(begin->second, run.startUnixNs);
    }
    const auto key = [&](const RunSummary& run) {
        const bool isOrdered = run.savedOrder > 0;
        return std::tuple(run.savedOrder, isOrdered ? begins.at({run.savedOrder, run.label}) : run.startUnixNs,
                          isOrdered ? run.label : "", run.startUnixNs);
    };
    std::ranges::stable_sort(runs, {}, key);
}

std::vector<BaselineEntry> entriesOf(const std::vector<RunSummary>& runs) {
    std::vector<BaselineEntry> entries;
    for (size_t i = 0; i < runs.size(); ++i) {
        const RunSummary& run = runs[i];
        const bool isNext = i > 0 && runs[i - 1].label == run.label;
        const bool isOfSave = isNext && run.savedOrder > 0 && runs[i - 1].savedOrder == run.savedOrder;
        if (!isOfSave && (!isNext || run.label.empty())) entries.push_back({run.label, false, i, 0, {}, {}});
        BaselineEntry& entry = entries.back();
        ++entry.size;
        entry.counted.push_back(i);
        entry.logs.push_back(std::log(locate(run.stepsNs, StepEstimator::trimmedMean).value));
        entry.isAccepted |= run.beginsLevel;
    }
    return entries;
}

std::vector<double> logsOf(const std::vector<RunSummary>& runs) {
    std::vector<double> logs;
    for (const RunSummary& run : runs) logs.push_back(std::log(locate(run.stepsNs, StepEstimator::trimmedMean).value));
    return logs;
}

double noiseDespiteOddRuns(const std::vector<std::vector<double>>& groups) {
    std::vector<double> differences;
    for (const std::vector<double>& logs : groups)
        for (size_t a = 0; a < logs.size(); ++a)
            for (size_t b = a + 1; b < logs.size(); ++b) differences.push_back(std::abs(logs[a] - logs[b]));
    return differences.size() < kFewestPairs ? kUsualNoise : middleNoise(std::move(differences));
}

std::vector<LeftOutRun> leaveOutOddRuns(const std::vector<RunSummary>& runs, std::vector<BaselineEntry>& entries) {
    std::vector<std::vector<double>> groups;
    for (const BaselineEntry& entry : entries) groups.push_back(entry.logs);
    const double noise = noiseDespiteOddRuns(groups);
    std::vector<LeftOutRun> leftOut;
    for (BaselineEntry& entry : entries) {
        if (entry.counted.size() < kFewestForOdd) continue;
        std::vector<const RunSummary*> group;
        for (const size_t i : entry.counted) group.push_back(&runs[i]);
        const std::vector<size_t> odd = oddOnes(group, entry.logs, noise);
        for (auto at = odd.rbegin(); at != odd.rend(); ++at) {
            const RunSummary& run = *group[*at];
            const FindingSummary* finding = findingOfItsMachine(run, group);
            const double ratio = std::exp(entry.logs[*at] - facts::median(entry.logs));
            leftOut.push_back({run.name, run.label,
                               fmt::format("{} {} than the other runs of its entry{}",
                                           text::percentText(std::abs(ratio - 1)), ratio > 1 ? "slower" : "faster",
                                           finding ? fmt::format(", {} {}", finding->id, finding->title) : "")});
        }
        for (auto at = odd.rbegin(); at != odd.rend(); ++at) {
            entry.counted.erase(entry.counted.begin() + static_cast<std::ptrdiff_t>(*at));
            entry.logs.erase(entry.logs.begin() + static_cast<std::ptrdiff_t>(*at));
        }
    }
    return leftOut;
}

double RunNoise::widened() const {
    return deviation * std::sqrt(degrees / (degrees - 2));
}

EarlierNoise noiseWithinEntries(const std::vector<BaselineEntry>& entries) {
    EarlierNoise noise;
    for (const BaselineEntry& entry : entries) {
        if (entry.logs.size() < 2) continue;
        const Side side = sideOf(entry.logs);
        noise.squares += side.variance * side.degrees();
        noise.degrees += side.degrees();
    }
    return noise;
}

RunNoise noiseOfRuns(const std::vector<BaselineEntry>& entries) {
    const EarlierNoise noise = noiseWithinEntries(entries);
    if (noise.degrees < kFewestDegrees) return noiseOfNeighbours(entries);
    return {std::max(kNoiseFloor, std::sqrt(noise.squares / noise.degrees)), noise.degrees};
}

}  // namespace rankscope::compare

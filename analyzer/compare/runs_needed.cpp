// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/runs_needed.h"

#include <algorithm>
#include <cmath>

#include "analyzer/compare/baseline_kinds.h"
#include "analyzer/compare/baseline_level.h"

namespace rankscope::compare {
namespace {

/// What is known of the noise of the newest kind of job.
EarlierNoise noiseOfNewestKind(std::vector<RunSummary> baseline, const std::set<std::string>& across) {
    BaselineHistory ignored;
    const EarlierNoise others = leaveOutOtherKinds(baseline, {baseline.back()}, across, ignored);
    EarlierNoise noise = timelineOf(baseline).withinLevels;
    const EarlierNoise added = addedByOtherKinds(noise, others);
    return {noise.squares + added.squares, noise.degrees + added.degrees};
}

/// Of so many runs against so many.
double foundBy(int runs, double betweenRuns, double degrees, const StepTimeOptions& options) {
    return foundShare({betweenRuns * std::sqrt(2.0 / runs), degrees + runs - 1, betweenRuns}, options);
}

}  // namespace

RunsNeeded runsNeeded(std::vector<RunSummary> baseline, StepTimeOptions options, const std::set<std::string>& across) {
    options.confidence = kLevelConfidence;
    RunsNeeded needed;
    needed.size = resolutionOf(options);
    std::erase_if(baseline, [](const RunSummary& run) { return run.stepsNs.empty(); });
    if (baseline.empty()) return needed;
    const EarlierNoise noise = noiseOfNewestKind(std::move(baseline), across);
    if (noise.degrees < 1) return needed;
    needed.betweenRuns = std::max(kNoiseFloor, std::sqrt(noise.squares / noise.degrees));
    const auto found = [&] { return foundBy(needed.runs, *needed.betweenRuns, noise.degrees, options); };
    while (needed.runs < kMostRunsOfChange && found() < kFoundWell) ++needed.runs;
    needed.found = found();
    return needed;
}

}  // namespace rankscope::compare

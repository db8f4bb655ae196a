// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/savings.h"

#include <algorithm>

#include "analyzer/detectors/detector.h"
#include "analyzer/replay/edits/graph_view.h"
#include "analyzer/timeline/statistics.h"

namespace rankscope::analyzer {
namespace {

/// Certain findings, deepest cause first: the order of the detectors.
std::vector<Finding*> byDepth(std::vector<Finding>& findings) {
    std::vector<Finding*> ordered;
    for (const Detector& detector : detectors())
        for (Finding& finding : findings)
            if (finding.id == detector.id && finding.verdict == Verdict::found) ordered.push_back(&finding);
    return ordered;
}

/// False: the detector saw something that the graph does not hold.
bool changeAll(ChangedJob& job, const std::vector<std::string>& changes, const Analysis& analysis) {
    try {
        for (const std::string& text : changes) change(job, *parseEdit(text), analysis);
    } catch (const EditError&) {
        return false;
    }
    return true;
}

}  // namespace

ReplayedSaving typicalSaving(const std::vector<double>& before, const std::vector<double>& after) {
    ReplayedSaving result = saving(before, after);
    std::vector<double> differences;
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) differences.push_back(before[i] - after[i]);
    if (median(std::move(differences)) < SavingThresholds::kRecurring * result.ns) return result;
    const double shift = median(before) - median(after) - result.ns;
    result.ns += shift;
    result.lowNs += shift;
    result.highNs += shift;
    return result;
}

std::optional<Ceiling> replaySavings(const Analysis& analysis, std::vector<Finding>& findings) {
    const ReplayModel& replay = analysis.replay;
    if (!replay.available() || replay.predictedStepNs <= 0) return std::nullopt;
    for (Finding& finding : findings)
        if (finding.verdict == Verdict::found) finding.changes = changesFor(analysis, finding);
    if (replay.error() > SavingThresholds::kLargestError) return std::nullopt;
    ChangedJob job = unchangedJob(analysis);
    const std::vector<double> unchanged = job.stepsNs;
    Ceiling ceiling;
    for (Finding* finding : byDepth(findings)) {
        if (finding->changes.empty()) continue;
        ChangedJob next = job;
        if (!changeAll(next, finding->changes, analysis)) {
            finding->changes.clear();
            continue;
        }
        const ReplayedSaving gained = typicalSaving(job.stepsNs, next.stepsNs);
        if (gained.ns <= 0) continue;  // what the replay does not see, it cannot price
        finding->savingNsPerStep = gained.ns;
        finding->savingLowNs = std::max(0.0, gained.lowNs);
        finding->savingHighNs = gained.highNs;
        finding->savingReplayed = true;
        ++ceiling.findings;
        job = std::move(next);
    }
    std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) { return a.savingNsPerStep.value_or(a.severity) > b.savingNsPerStep.value_or(b.severity); });
    if (ceiling.findings == 0) return std::nullopt;
    ceiling.saving = typicalSaving(unchanged, job.stepsNs);
    ceiling.share = ceiling.saving.ns / median(unchanged);
    return ceiling;
}

std::optional<double> transferEfficiency(const Analysis& analysis) {
    const ReplayModel& replay = analysis.replay;
    if (!replay.available() || replay.predictedStepNs <= 0 || replay.error() > SavingThresholds::kLargestError) return std::nullopt;
    std::vector<int64_t> durations = replay.graph.durationNs;
    for (const TransferTask& transfer : transferTasks(replay.graph)) durations[transfer.task] = 0;
    return std::min(1.0, replay.stepNs(simulate(replay.graph, durations)) / replay.predictedStepNs);
}

}  // namespace rankscope::analyzer

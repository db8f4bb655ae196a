// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyzer/facts/statistics.h"
#include "analyzer/text/units.h"

namespace rankscope::replay {
namespace {

constexpr double kMostError = 0.1;  // of the measured step: three times what is asked of a replay; beyond, the job
                                    // waited for something that the trace does not show

/// Returns the job's steps as recorded: by number, first start over ranks, then the last end.
std::vector<StepTime> recordedSteps(const facts::TraceFacts& facts) {
    std::map<int, int64_t> starts;
    int64_t endNs = INT64_MIN;
    for (const facts::RankFacts& rank : facts.ranks) {
        for (const facts::StepWindow& step : rank.steps) {
            const auto [at, isNew] = starts.try_emplace(step.step, step.startNs);
            at->second = std::min(at->second, step.startNs);
            endNs = std::max(endNs, step.startNs + step.durNs);
        }
    }
    std::vector<StepTime> times;
    for (const auto& [step, startNs] : starts) times.push_back({step, startNs, 0});
    for (size_t i = 0; i < times.size(); ++i)
        times[i].durNs = (i + 1 < times.size() ? times[i + 1].startNs : endNs) - times[i].startNs;
    return times;
}

std::vector<double> durationsOf(const std::vector<StepTime>& times, const std::vector<int>& steps) {
    std::vector<double> durations;
    for (const StepTime& time : times)
        if (std::ranges::find(steps, time.step) != steps.end()) durations.push_back(static_cast<double>(time.durNs));
    return durations;
}

std::string whyNot(const facts::TraceFacts& facts, const std::vector<RankTasks>& ranks, const std::vector<int>& steps) {
    if (ranks.empty()) return "no device activity was recorded";
    if (facts.wholeRunIsOneStep) return "no steps were found";
    if (steps.size() < 2) return "one step alone: what belongs to it cannot be told from what it had been given before";
    for (const facts::RankFacts& rank : facts.ranks)
        if (!rank.recorded)
            return fmt::format("rank {} is not recorded: when the others waited for it is unknown", rank.rank);
    for (const auto& [id, communicator] : facts.communicators)
        if (static_cast<int>(communicator.ranks.size()) < communicator.size)
            return fmt::format(
                "{} of the {} ranks that communicate with {} are not recorded: when the others waited for them is "
                "unknown",
                communicator.size - static_cast<int>(communicator.ranks.size()), communicator.size,
                communicator.ranks.empty() ? "those recorded" : text::ranksText(communicator.ranks));
    for (const RankTasks& rank : ranks)
        if (!rank.problem.empty()) return fmt::format("rank {}: {}", rank.rank, rank.problem);
    return {};
}

std::vector<std::string> notesOf(const EdgeCounts& counts) {
    std::vector<std::string> notes;
    if (counts.inferredWaits > 0)
        notes.push_back(
            fmt::format("{} waits between streams are not recorded and were inferred from what ended when work began",
                        counts.inferredWaits));
    if (counts.inferredBlocking > 0)
        notes.push_back(
            fmt::format("{} calls were taken to have waited for the device because they returned when its work ended",
                        counts.inferredBlocking));
    if (counts.contradicted > 0)
        notes.push_back(fmt::format("{} waits were left out because the times contradict them", counts.contradicted));
    return notes;
}

std::string partNoteOf(const ReplayWindow& window) {
    const ReplayedReplicas& replicas = window.replicas;
    if (!replicas.leftOut.empty())
        return fmt::format(
            "the ranks are {} replicas that run the same program, and {} stand for all: those that the others waited "
            "for most, and some from the latest to the earliest; the others came {:.2g} ms a step later than these",
            replicas.of, replicas.replayed, replicas.lateByOthersNs / 1e6);
    if (window.whole()) return {};
    return fmt::format("the trace is too long to be replayed as a whole: steps {} to {} stand for all", window.first,
                       window.last - 1);
}

}  // namespace

double ReplayModel::error() const {
    return measuredStepNs > 0 ? std::abs(predictedStepNs - measuredStepNs) / measuredStepNs : 0;
}

void ReplayModel::playUnchanged() {
    unchanged = simulate(graph);
    unchangedStepsNs = stepsNs(graph, unchanged);
    predictedStepNs = facts::mean(unchangedStepsNs);
}

std::vector<double> ReplayModel::stepsNs(const TaskGraph& of, const Schedule& schedule) const {
    return durationsOf(stepTimes(of, schedule), steps);
}

double ReplayModel::stepNs(const TaskGraph& of, const Schedule& schedule) const {
    return facts::mean(stepsNs(of, schedule));
}

ReplayModel replay(const facts::TraceFacts& facts, std::vector<RankTasks> ranks, const std::vector<int>& steps,
                   const ReplayWindow& window) {
    ReplayModel model;
    // The last step of a part is cut off where its range ends on the host: how long it is until the next one is not
    // replayed.
    for (int step : steps)
        if (window.whole() || (step >= window.first && step < window.last)) model.steps.push_back(step);
    model.unavailable = whyNot(facts, ranks, steps);
    if (!model.available()) return model;
    model.leftOut = window.replicas.leftOut;
    std::erase_if(ranks, [&](const RankTasks& rank) { return !window.holds(rank.rank); });
    for (const RankTasks& rank : ranks) model.edges += rank.counts;
    model.notes = notesOf(model.edges);
    model.partNote = partNoteOf(window);
    if (!model.partNote.empty()) model.notes.push_back(model.partNote);
    JoinedRanks joined = joinRanks(std::move(ranks), facts);
    model.unavailable = std::move(joined.problem);
    if (!model.available()) return model;
    model.graph = std::move(joined.graph);
    model.playUnchanged();
    model.measuredStepNs = facts::mean(durationsOf(recordedSteps(facts), model.steps));
    if (model.error() > kMostError)
        model.unavailable = fmt::format(
            "played again, the steps are {:.0f} % off the measured ones: they waited for something that the trace does "
            "not show",
            100 * model.error());
    model.path = criticalPath(model.graph, model.unchanged, model.steps);
    return model;
}

}  // namespace rankscope::replay

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/rank_tasks.h"

#include <algorithm>

#include "analyzer/replay/rank_recorder.h"
#include "collector/store/reader.h"

namespace rankscope::replay {
namespace {

// A piece of device work comes to so many tasks: itself, its call, and now and then a wait or the second task of an
// NCCL kernel.
constexpr double kTasksPerPiece = 2.2;

double tasksOf(store::TraceReader& trace, const facts::TraceFacts& facts) {
    int64_t pieces = 0;
    for (const facts::RankFacts& rank : facts.ranks)
        pieces += trace.extent<store::Kernel>(rank.rank).count() + trace.extent<store::Memcpy>(rank.rank).count() +
                  trace.extent<store::Memset>(rank.rank).count();
    return kTasksPerPiece * static_cast<double>(pieces);
}

/// All steps, or as many of the last ones as fit, two at least.
ReplayWindow lastSteps(const facts::TraceFacts& facts, double tasks, size_t mostTasks) {
    const auto most = std::ranges::max_element(facts.ranks, {}, [](const auto& rank) { return rank.steps.size(); });
    if (tasks <= static_cast<double>(mostTasks) || most == facts.ranks.end() || most->steps.empty()) return {};
    const auto steps = static_cast<double>(most->steps.size());
    const auto fit = std::max<size_t>(2, static_cast<size_t>(steps * static_cast<double>(mostTasks) / tasks));
    if (fit >= most->steps.size()) return {};
    return {.first = most->steps[most->steps.size() - fit].step, .last = most->steps.back().step};
}

}  // namespace

ReplayWindow replayWindow(store::TraceReader& trace, const facts::TraceFacts& facts, size_t mostTasks) {
    return lastSteps(facts, tasksOf(trace, facts), mostTasks);
}

ReplayWindow replayWindowOfReplicas(store::TraceReader& trace, const facts::TraceFacts& facts,
                                    const ReplayLimits& limits) {
    const double tasks = tasksOf(trace, facts);
    const double enough = static_cast<double>(limits.enoughTasks) / tasks;
    const double most = static_cast<double>(limits.mostTasks) / tasks;
    if (enough < 1) {
        ReplayWindow some{.replicas = chooseReplicas(facts, enough, most < 1 ? most : ReplayLimits::kMostKept)};
        if (!some.replicas.leftOut.empty()) return some;
    }
    return lastSteps(facts, tasks, limits.mostTasks);
}

EdgeCounts& EdgeCounts::operator+=(const EdgeCounts& other) {
    inferredWaits += other.inferredWaits;
    inferredBlocking += other.inferredBlocking;
    contradicted += other.contradicted;
    return *this;
}

RankTasks rankTasks(const facts::RankEvents& events, const facts::TraceFacts& facts, const ReplayWindow& window) {
    if (!window.holds(events.rank)) return {.rank = events.rank};
    return RankRecorder(events, facts, window).run();
}

}  // namespace rankscope::replay

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

}  // namespace

ReplayWindow replayWindow(store::TraceReader& trace, const facts::TraceFacts& facts, size_t mostTasks) {
    int64_t pieces = 0;
    const facts::RankFacts* most = nullptr;
    for (const facts::RankFacts& rank : facts.ranks) {
        pieces += trace.extent<store::Kernel>(rank.rank).count() + trace.extent<store::Memcpy>(rank.rank).count() +
                  trace.extent<store::Memset>(rank.rank).count();
        if (most == nullptr || rank.steps.size() > most->steps.size()) most = &rank;
    }
    const double tasks = kTasksPerPiece * static_cast<double>(pieces);
    if (tasks <= static_cast<double>(mostTasks) || most == nullptr || most->steps.empty()) return {};
    const auto steps = static_cast<double>(most->steps.size());
    const auto fit = std::max<size_t>(2, static_cast<size_t>(steps * static_cast<double>(mostTasks) / tasks));
    if (fit >= most->steps.size()) return {};
    return {most->steps[most->steps.size() - fit].step, most->steps.back().step};
}

EdgeCounts& EdgeCounts::operator+=(const EdgeCounts& other) {
    inferredWaits += other.inferredWaits;
    inferredBlocking += other.inferredBlocking;
    contradicted += other.contradicted;
    return *this;
}

RankTasks rankTasks(const facts::RankEvents& events, const facts::TraceFacts& facts, const ReplayWindow& window) {
    return RankRecorder(events, facts, window).run();
}

}  // namespace rankscope::replay

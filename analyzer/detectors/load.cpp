// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/load.h"

#include <map>
#include <mutex>

#include "analyzer/replay/replay.h"
#include "analyzer/timeline/phase_one.h"
#include "collector/store/reader.h"

namespace rankscope::analyzer {
namespace {

/// The ranks' tasks, handed in by the workers of phase 1.
class ReplayTasks {
  public:
    ReplayTasks(const TraceFacts& facts, const ReplayWindow& window) : m_facts(facts), m_window(window) {}
    void take(const RankEvents& events) {
        RankTasks tasks = rankTasks(events, m_facts, m_window);
        const std::lock_guard lock(m_mutex);
        m_ranks.emplace(events.rank, std::move(tasks));
    }
    /// By rank.
    std::vector<RankTasks> all() && {
        std::vector<RankTasks> ranks;
        for (auto& [rank, tasks] : m_ranks) ranks.push_back(std::move(tasks));
        return ranks;
    }

  private:
    const TraceFacts& m_facts;  // those of phase 1
    const ReplayWindow m_window;
    std::mutex m_mutex;  // guards m_ranks
    std::map<int, RankTasks> m_ranks;
};

TraceFacts readFacts(const std::filesystem::path& database) {
    store::TraceReader trace(database);
    return readTraceFacts(trace);
}

ReplayWindow readWindow(const std::filesystem::path& database, const TraceFacts& facts) {
    store::TraceReader trace(database);
    return replayWindow(trace, facts);
}

}  // namespace

Analysis readAnalysis(const std::filesystem::path& database, const LoadOptions& options) {
    // Phase 1: each rank for itself, one rank's events in memory per worker.
    TraceFacts facts = readFacts(database);
    const ReplayWindow window = readWindow(database, facts);
    ReplayTasks tasks(facts, window);
    const RankObserver observer = options.observer ? options.observer(facts) : RankObserver();
    std::vector<RankSummary> ranks = summarizeRanks(database, facts, options.workers, [&](const RankEvents& events) {
        tasks.take(events);
        if (observer) observer(events);
    });

    // Phase 2: what the ranks did to each other.
    Analysis analysis = makeAnalysis(std::move(facts), std::move(ranks), options.links);
    analysis.replay = replay(analysis.facts, std::move(tasks).all(), analysis.steps, window);
    analysis.delays = delaysOf(analysis, analysis.replay);
    return analysis;
}

}  // namespace rankscope::analyzer

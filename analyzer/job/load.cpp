// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/load.h"

#include <map>
#include <mutex>

#include "analyzer/facts/rank_summary.h"
#include "analyzer/replay/replay.h"
#include "collector/store/reader.h"

namespace rankscope::job {
namespace {

/// The ranks' tasks, handed in by the workers of phase 1.
class ReplayTasks {
  public:
    ReplayTasks(const facts::TraceFacts& facts, const replay::ReplayWindow& window)
        : m_facts(facts), m_window(window) {}
    void take(const facts::RankEvents& events) {
        replay::RankTasks tasks = replay::rankTasks(events, m_facts, m_window);
        const std::lock_guard lock(m_mutex);
        m_ranks.emplace(events.rank, std::move(tasks));
    }
    /// By rank.
    std::vector<replay::RankTasks> all() && {
        std::vector<replay::RankTasks> ranks;
        for (auto& [rank, tasks] : m_ranks) ranks.push_back(std::move(tasks));
        return ranks;
    }

  private:
    const facts::TraceFacts& m_facts;  // those of phase 1
    const replay::ReplayWindow m_window;
    std::mutex m_mutex;  // guards m_ranks
    std::map<int, replay::RankTasks> m_ranks;
};

facts::TraceFacts readFacts(const std::filesystem::path& database) {
    store::TraceReader trace(database);
    return facts::readTraceFacts(trace);
}

replay::ReplayWindow readWindow(const std::filesystem::path& database, const facts::TraceFacts& facts) {
    store::TraceReader trace(database);
    return replay::replayWindow(trace, facts);
}

}  // namespace

Analysis readAnalysis(const std::filesystem::path& database, const LoadOptions& options) {
    // Phase 1: each rank for itself, one rank's events in memory per worker.
    facts::TraceFacts facts = readFacts(database);
    const replay::ReplayWindow window = readWindow(database, facts);
    ReplayTasks tasks(facts, window);
    const RankObserver observer = options.observer ? options.observer(facts) : RankObserver();
    std::vector<facts::RankSummary> ranks =
        facts::summarizeRanks(database, facts, options.workers, [&](const facts::RankEvents& events) {
            tasks.take(events);
            if (observer) observer(events);
        });

    // Phase 2: what the ranks did to each other.
    Analysis analysis = makeAnalysis(std::move(facts), std::move(ranks), options.links);
    analysis.replay = replay::replay(analysis.facts, std::move(tasks).all(), analysis.steps, window);
    analysis.delays = delaysOf(analysis, analysis.replay);
    return analysis;
}

}  // namespace rankscope::job

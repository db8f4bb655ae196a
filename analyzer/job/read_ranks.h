// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "analyzer/facts/rank_summary.h"
#include "analyzer/replay/rank_tasks.h"

namespace rankscope::job {

/// What phase 1 makes of a rank.
struct ReadRank {
    facts::RankSummary summary;
    replay::RankTasks tasks;
};

/// Ranks on their way from the threads that read them to the one that takes them, in an order of its own. Holds what
/// was read and not taken yet: all ranks, where nobody takes them before the last is read.
class ReadRanks {
  public:
    /// Before the summary of the rank.
    void put(int rank, replay::RankTasks tasks) {
        const std::lock_guard lock(m_mutex);
        m_tasks[rank] = std::move(tasks);
    }
    void put(facts::RankSummary summary) {
        {
            const std::lock_guard lock(m_mutex);
            m_summaries[summary.rank] = std::move(summary);
        }
        m_more.notify_one();
    }
    /// No more will come.
    void end() {
        {
            const std::lock_guard lock(m_mutex);
            m_ended = true;
        }
        m_more.notify_one();
    }
    /// Waits until the rank is there; nothing where end() comes before it. Each is taken once.
    std::optional<ReadRank> take(int rank) {
        std::unique_lock lock(m_mutex);
        m_more.wait(lock, [&] { return m_ended || m_summaries.contains(rank); });
        auto summary = m_summaries.extract(rank);
        auto tasks = m_tasks.extract(rank);
        if (summary.empty()) return std::nullopt;
        return ReadRank{std::move(summary.mapped()), std::move(tasks.mapped())};
    }

  private:
    std::mutex m_mutex;
    std::condition_variable m_more;
    std::map<int, replay::RankTasks> m_tasks;       // by rank
    std::map<int, facts::RankSummary> m_summaries;  // by rank
    bool m_ended = false;
};

}  // namespace rankscope::job

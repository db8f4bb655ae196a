// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_loader.h"

#include <algorithm>

namespace rankscope::gui {
namespace {

size_t threadCount(size_t ranks) { return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, std::max<size_t>(1, std::min<size_t>(ranks, 8))); }

}  // namespace

RunLoader::RunLoader(std::shared_ptr<const RunInfo> run, Callbacks callbacks) : m_run(std::move(run)), m_callbacks(std::move(callbacks)) {
    for (const OutlineRank& rank : m_run->outline.ranks) m_queue.push_back(rank.rank);
    std::reverse(m_queue.begin(), m_queue.end());
    m_running = threadCount(m_queue.size());
    for (size_t i = 0, count = m_running; i < count; ++i) m_threads.emplace_back([this] { work(); });
}

RunLoader::~RunLoader() {
    cancel();
    for (std::thread& thread : m_threads) thread.join();
}

void RunLoader::prefer(const std::vector<int32_t>& ranks) {
    const std::lock_guard lock(m_mutex);
    std::stable_partition(m_queue.begin(), m_queue.end(), [&](int32_t rank) { return std::find(ranks.begin(), ranks.end(), rank) == ranks.end(); });
}

double RunLoader::progress() const {
    return m_run->events == 0 ? 1 : std::min(1.0, static_cast<double>(m_control.rowsRead.load()) / static_cast<double>(m_run->events));
}

bool RunLoader::next(int32_t& rank) {
    const std::lock_guard lock(m_mutex);
    if (m_control.cancelled || m_queue.empty()) return false;
    rank = m_queue.back();
    m_queue.pop_back();
    return true;
}

void RunLoader::work() {
    const auto report = [this](const std::exception& error) {
        const std::lock_guard lock(m_mutex);
        if (m_callbacks.failed) m_callbacks.failed(error.what());
    };
    try {
        store::TraceReader reader(m_run->file);
        for (int32_t rank = 0; next(rank);) {
            try {
                RankTracksPtr tracks = loadRankTracks(reader, *m_run, rank, m_control);
                const std::lock_guard lock(m_mutex);
                if (tracks && m_callbacks.rankLoaded) m_callbacks.rankLoaded(std::move(tracks));
            } catch (const std::exception& error) {
                report(error);
            }
        }
    } catch (const std::exception& error) {
        report(error);
    }
    const std::lock_guard lock(m_mutex);
    if (--m_running == 0 && m_callbacks.finished) m_callbacks.finished(m_control.cancelled);
}

}  // namespace rankscope::gui

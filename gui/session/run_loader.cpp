// SPDX-License-Identifier: Apache-2.0
#include "gui/session/run_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "collector/store/error.h"

namespace rankscope::gui {
namespace {

// 37 bytes stay; while columns grow they are there twice for a moment.
constexpr int64_t kBytesPerEvent = 56;

size_t threadCount(size_t ranks) {
    return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, std::max<size_t>(1, std::min<size_t>(ranks, 8)));
}

}  // namespace

RunLoader::RunLoader(std::shared_ptr<const RunInfo> run, Callbacks callbacks, int64_t memoryBytes)
    : m_run(std::move(run)), m_callbacks(std::move(callbacks)), m_memoryLeft(memoryBytes) {
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
    std::stable_partition(m_queue.begin(), m_queue.end(),
                          [&](int32_t rank) { return std::find(ranks.begin(), ranks.end(), rank) == ranks.end(); });
}

double RunLoader::progress() const {
    return m_run->events == 0
               ? 1
               : std::min(1.0, static_cast<double>(m_control.rowsRead.load()) / static_cast<double>(m_run->events));
}

bool RunLoader::next(int32_t& rank) {
    const std::lock_guard lock(m_mutex);
    if (m_control.cancelled || m_queue.empty()) return false;
    rank = m_queue.back();
    m_queue.pop_back();
    return true;
}

int64_t RunLoader::memoryToSpare() {
    std::ifstream file("/proc/meminfo");
    std::string key;
    int64_t kilobytes = 0;
    for (std::string unit; file >> key >> kilobytes; std::getline(file, unit))
        if (key == "MemAvailable:") return kilobytes * 1024 / 5 * 4;
    return INT64_MAX;
}

int64_t RunLoader::bytesWanted(int32_t rank) const {
    const auto found = m_run->eventsOfRank.find(rank);
    return found == m_run->eventsOfRank.end() ? 0 : found->second * kBytesPerEvent;
}

bool RunLoader::takeMemory(int32_t rank) {
    const std::lock_guard lock(m_mutex);
    if (bytesWanted(rank) > m_memoryLeft) return false;
    m_memoryLeft -= bytesWanted(rank);
    return true;
}

void RunLoader::report(int32_t rank, const std::string& reason, const std::string& hint) {
    const std::lock_guard lock(m_mutex);
    if (m_callbacks.failed) m_callbacks.failed(rank, reason, hint);
}

void RunLoader::load(store::TraceReader& reader, int32_t rank) {
    if (!takeMemory(rank)) {
        report(
            rank,
            fmt::format("not shown: its {} million events need {:.1f} GiB of memory, which are not free",
                        m_run->eventsOfRank.at(rank) / 1'000'000, static_cast<double>(bytesWanted(rank)) / (1 << 30)),
            "");
        return;
    }
    RankTracksPtr tracks = loadRankTracks(reader, *m_run, rank, m_control);
    if (!tracks) return;
    if (!tracks->damage.empty())
        report(rank, "not all of it can be read: " + tracks->damage,
               "the file is damaged: make it again with `rankscope collect` or `rankscope import`");
    const std::lock_guard lock(m_mutex);
    m_memoryLeft += bytesWanted(rank) - static_cast<int64_t>(tracks->bytes());
    if (m_callbacks.rankLoaded) m_callbacks.rankLoaded(std::move(tracks));
}

void RunLoader::reportUnread(const std::string& reason, const std::string& hint) {
    for (int32_t rank = 0; next(rank);) report(rank, "not readable: " + reason, hint);
}

void RunLoader::work() {
    try {
        store::TraceReader reader(m_run->file, {}, store::MisplacedRows::kept);
        for (int32_t rank = 0; next(rank);) {
            try {
                load(reader, rank);
            } catch (const store::Error& error) {
                report(rank, "not readable: " + error.cause(), error.hint());
            } catch (const std::exception& error) {
                report(rank, std::string("not readable: ") + error.what(), "");
            }
        }
    } catch (const store::Error& error) {
        reportUnread(error.cause(), error.hint());
    } catch (const std::exception& error) {
        reportUnread(error.what(), "");
    }
    const std::lock_guard lock(m_mutex);
    if (--m_running == 0 && m_callbacks.finished) m_callbacks.finished(m_control.cancelled);
}

}  // namespace rankscope::gui

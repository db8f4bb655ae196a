// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/ring_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "analyzer/cli/job/ring_dump.h"
#include "analyzer/text/plain_text.h"
#include "injector/capture_format/watch_counters.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

// Of all living processes of the run together.
uint64_t slowStepsIn(const fs::path& captures) {
    uint64_t count = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(captures, ignored)) {
        if (entry.path().extension() != ".ring") continue;
        capture::FileHeader header{};
        capture::WatchCounters counters{};
        if (capture::readWatched(fs::path(entry.path()).replace_extension(".cap").c_str(), header, counters))
            count += counters.slowSteps;
    }
    return count;
}

}  // namespace

// Another wrapper of the job may have been first: what the ring holds now is in its dump.
bool RingWatch::isFresh() {
    const std::lock_guard lock(m_mutex);
    if (m_isWorking) return true;
    std::error_code ignored;
    const auto now = fs::file_time_type::clock::now();
    for (const auto& entry : fs::directory_iterator(m_run / "dumps", ignored))
        if (now - entry.last_write_time(ignored) < std::chrono::duration<double>(m_ringS)) return true;
    return false;
}

void RingWatch::note(std::string text) {
    const std::lock_guard lock(m_mutex);
    m_notes.push_back(std::move(text));
}

void RingWatch::dump(const std::string& reason) {
    {
        const std::lock_guard lock(m_mutex);
        m_wanted.push_back(reason);
        if (std::exchange(m_isWorking, true)) return;
    }
    if (m_thread.joinable()) m_thread.join();  // it has nothing left to do
    try {
        m_thread = std::thread([this] { work(); });
    } catch (const std::system_error&) {
        work();  // signals wait, which is better than no dump
    }
}

void RingWatch::work() {
    for (;;) {
        std::string reason;
        {
            const std::lock_guard lock(m_mutex);
            m_isWorking = !m_wanted.empty();
            if (!m_isWorking) return;
            reason = std::move(m_wanted.front());
            m_wanted.pop_front();
        }
        copy(reason);
    }
}

void RingWatch::finish() {
    if (m_thread.joinable()) m_thread.join();
}

void RingWatch::copy(const std::string& reason) {
    try {
        const std::string path = dumpRing(m_run, reason).run.string();
        note(fmt::format("what the ranks recorded in the last {:g} s is in {}: rankscope analyze {}", m_ringS, path,
                         text::shellWord(path)));
    } catch (const std::exception& error) {
        note(fmt::format("the ring is not dumped: {}", error.what()));
    }
}

void RingWatch::dumpByItself(const std::string& reason) {
    if (m_byItself == kMostByItself || isFresh()) return;
    ++m_byItself;
    dump(reason);
    if (m_byItself == kMostByItself)
        note(fmt::format("{} dumps were made: from now on only `rankscope trigger` makes one", kMostByItself));
}

void RingWatch::look() {
    const uint64_t slowSteps = slowStepsIn(m_run / "capture");
    if (slowSteps > m_slowSteps) dumpByItself("slow_step");
    m_slowSteps = slowSteps;  // less than before when a rank has ended
}

std::vector<std::string> RingWatch::takeNotes() {
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_notes, {});
}

}  // namespace rankscope::cli

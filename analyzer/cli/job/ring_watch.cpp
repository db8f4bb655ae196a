// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/ring_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "analyzer/cli/job/ring_dump.h"
#include "analyzer/text/plain_text.h"
#include "injector/capture_format/ring_layout.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

// Of all living processes of the run together.
uint64_t slowStepsIn(const fs::path& captures) {
    uint64_t count = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(captures, ignored)) {
        if (entry.path().extension() != ".ring") continue;
        const int descriptor = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
        capture::RingFileHeader header{};
        if (descriptor >= 0 && pread(descriptor, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
            std::memcmp(header.magic, capture::kRingMagic, sizeof header.magic) == 0)
            count += header.slowSteps;
        if (descriptor >= 0) close(descriptor);
    }
    return count;
}

}  // namespace

// Another wrapper of the job may have been first: what the ring holds now is in its dump.
bool RingWatch::isFresh() const {
    std::error_code ignored;
    const auto now = fs::file_time_type::clock::now();
    for (const auto& entry : fs::directory_iterator(m_run / "dumps", ignored))
        if (now - entry.last_write_time(ignored) < std::chrono::duration<double>(m_ringS)) return true;
    return false;
}

void RingWatch::dump(const std::string& reason) {
    try {
        const std::string path = dumpRing(m_run, reason).run.string();
        m_notes.push_back(fmt::format("what the ranks recorded in the last {:g} s is in {}: rankscope analyze {}",
                                      m_ringS, path, text::shellWord(path)));
    } catch (const std::exception& error) {
        m_notes.push_back(fmt::format("the ring is not dumped: {}", error.what()));
    }
}

void RingWatch::dumpByItself(const std::string& reason) {
    if (m_byItself == kMostByItself || isFresh()) return;
    ++m_byItself;
    dump(reason);
    if (m_byItself == kMostByItself)
        m_notes.push_back(
            fmt::format("{} dumps were made: from now on only `rankscope trigger` makes one", kMostByItself));
}

void RingWatch::look() {
    const uint64_t slowSteps = slowStepsIn(m_run / "capture");
    if (slowSteps > m_slowSteps) dumpByItself("slow_step");
    m_slowSteps = slowSteps;  // less than before when a rank has ended
}

std::vector<std::string> RingWatch::takeNotes() {
    return std::exchange(m_notes, {});
}

}  // namespace rankscope::cli

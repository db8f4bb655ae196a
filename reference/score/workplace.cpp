// SPDX-License-Identifier: Apache-2.0
#include "reference/score/workplace.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>

#include "reference/score/score.h"

namespace rankscope::score {

namespace fs = std::filesystem;

std::atomic<bool> stopRequested{false};

StopOnSignals::StopOnSignals() {
    struct sigaction action {};
    action.sa_handler = [](int) { stopRequested = true; };
    sigaction(SIGINT, &action, &m_interrupt);
    sigaction(SIGTERM, &action, &m_terminate);
}

StopOnSignals::~StopOnSignals() {
    sigaction(SIGINT, &m_interrupt, nullptr);
    sigaction(SIGTERM, &m_terminate, nullptr);
}

Workplace::Workplace(const fs::path& keep) : m_temporary(keep.empty()) {
    std::error_code error;
    if (!m_temporary) {
        fs::create_directories(keep, error);
        if (error) throw ScoreError(fmt::format("cannot create {}: {}", keep.string(), error.message()));
        m_folder = fs::absolute(keep);
        return;
    }
    std::string pattern = (fs::temp_directory_path() / "rankscope-score-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
        throw ScoreError(fmt::format("cannot create a folder like {}: {}", pattern, std::strerror(errno)));
    m_folder = pattern;
}

Workplace::~Workplace() {
    std::error_code ignored;
    if (m_temporary) fs::remove_all(m_folder, ignored);
}

}  // namespace rankscope::score

// SPDX-License-Identifier: Apache-2.0
// Where a score runs its jobs, and how it is ended early.
#pragma once

#include <signal.h>

#include <atomic>
#include <filesystem>

namespace rankscope::score {

/// Set by SIGINT and SIGTERM while a StopOnSignals lives.
extern std::atomic<bool> stopRequested;

/// While it lives, SIGINT and SIGTERM ask for an orderly end.
class StopOnSignals {
  public:
    StopOnSignals();
    ~StopOnSignals();
    StopOnSignals(const StopOnSignals&) = delete;
    StopOnSignals& operator=(const StopOnSignals&) = delete;

  private:
    struct sigaction m_interrupt {
    }, m_terminate{};
};

/// A folder for the runs: the user's, or a temporary one that goes with this object. Throws ScoreError.
class Workplace {
  public:
    explicit Workplace(const std::filesystem::path& keep);
    ~Workplace();
    Workplace(const Workplace&) = delete;
    Workplace& operator=(const Workplace&) = delete;
    const std::filesystem::path& folder() const { return m_folder; }

  private:
    bool m_temporary;
    std::filesystem::path m_folder;
};

}  // namespace rankscope::score

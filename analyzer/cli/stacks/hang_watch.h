// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "analyzer/cli/stacks/process_snapshot.h"
#include "analyzer/cli/stacks/stall_watch.h"

namespace rankscope::cli {

// Watches the processes of a job while it runs, and reads the stacks of those that stand still into NAME/stacks
// (injector/capture_format/STACKS.md). look() and its like are called by the thread that waits for the job; reading has
// a thread of its own, and finding the frames a process of its own, which may die or be ended.
class HangWatch {
  public:
    // `delayNs`: from now on nothing is recorded for so long. `mayWorkUnseen`: as of StallWatch.
    HangWatch(std::filesystem::path runDirectory, int64_t timeoutNs, int64_t delayNs, bool mayWorkUnseen);
    ~HangWatch();  // as jobHasEnded()
    HangWatch(const HangWatch&) = delete;
    HangWatch& operator=(const HangWatch&) = delete;

    // How often ranks were told to stand still so far.
    int timesTold() const { return m_timesTold; }

    // How often look() should be called.
    int periodMs() const { return m_periodMs; }
    void look();

    // Waits until what is being read is written, ten seconds at most.
    void jobHasEnded();

    // What there is to say since this was last asked: what was read, and what could not be. Each thing once.
    std::vector<std::string> takeNotes();

  private:
    void read(const std::vector<StalledProcess>& stalled);
    struct Reading {
        ProcessSnapshot snapshot;
        int64_t captureBytes = -1;
    };
    void write(const StalledProcess& stalled, const Reading& reading, int64_t unixNs);
    std::chrono::steady_clock::time_point deadline() const;
    void note(std::string text);

    std::filesystem::path m_run;
    int64_t m_timeoutNs;
    int m_periodMs;
    int m_timesTold = 0;
    int64_t m_beginNs;  // of looking
    StallWatch m_stalls;
    std::thread m_reader;
    std::atomic<bool> m_reading{false};
    std::atomic<int64_t> m_endNs{-1};  // when the job ended; -1: it lives
    std::mutex m_notesLock;
    std::vector<std::string> m_notes, m_told;
};

}  // namespace rankscope::cli

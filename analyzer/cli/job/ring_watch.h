// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rankscope::cli {

// Dumps the ring of a job in light mode while the job runs: when told to, when a rank had a slow step, when ranks stand
// still. Called by the thread that waits for the job, which passes signals on to it: files are copied by another.
class RingWatch {
  public:
    // A signal that the wrapper keeps for itself where there is a ring: no program that is known sends or expects it.
    static int triggerSignal() { return SIGRTMIN + 7; }

    // `ringS`: how long the ring is, at least.
    RingWatch(std::filesystem::path run, double ringS) : m_run(std::move(run)), m_ringS(ringS) {}
    ~RingWatch() { finish(); }
    RingWatch(const RingWatch&) = delete;
    RingWatch& operator=(const RingWatch&) = delete;

    // Somebody asks for it.
    void trigger() { dump("signal"); }
    // Whether ranks told of slow steps since; about every second.
    void look();
    void ranksStandStill() { dumpByItself("hang"); }

    // Waits for the dumps that were asked for.
    void finish();

    // What there is to say since this was last asked.
    std::vector<std::string> takeNotes();

  private:
    // A week of trouble must not fill the disk. Asked for, there may be more.
    static constexpr int kMostByItself = 8;

    void dump(const std::string& reason);
    void dumpByItself(const std::string& reason);
    bool isFresh();
    void work();
    void copy(const std::string& reason);
    void note(std::string text);

    std::filesystem::path m_run;
    double m_ringS;
    uint64_t m_slowSteps = 0;
    int m_byItself = 0;
    std::thread m_thread;
    std::mutex m_mutex;  // of what follows
    bool m_isWorking = false;
    std::deque<std::string> m_wanted;  // reasons
    std::vector<std::string> m_notes;
};

}  // namespace rankscope::cli

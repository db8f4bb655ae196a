// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gui/session/track_loader.h"

namespace rankscope::gui {

/// Loads the ranks of a run on threads of its own, in the order asked for. The callbacks come from those threads, one
/// at a time. Ranks for which there is no memory left are not loaded, and said to be so.
class RunLoader {
  public:
    struct Callbacks {
        std::function<void(RankTracksPtr)> rankLoaded;
        /// A rank is not shown, or not all of it; the others go on. `reason` fits behind "rank 3: ", `hint` may be
        /// empty.
        std::function<void(int32_t rank, std::string reason, std::string hint)> failed;
        std::function<void(bool cancelled)> finished;
    };

    /// `run` is shared and must not change. `memoryBytes` is what all its ranks together may take.
    RunLoader(std::shared_ptr<const RunInfo> run, Callbacks callbacks, int64_t memoryBytes = memoryToSpare());
    /// Cancels and waits.
    ~RunLoader();

    /// Ranks to load before the others: what is in sight.
    void prefer(const std::vector<int32_t>& ranks);
    void cancel() { m_control.cancelled = true; }
    /// Share of the rows that have been read, 0..1.
    double progress() const;
    /// Most of what the machine has free now, in bytes.
    static int64_t memoryToSpare();

  private:
    void work();
    bool next(int32_t& rank);
    int64_t bytesWanted(int32_t rank) const;
    bool takeMemory(int32_t rank);
    void load(store::TraceReader& reader, int32_t rank);
    void report(int32_t rank, const std::string& reason, const std::string& hint);
    void reportUnread(const std::string& reason, const std::string& hint);

    std::shared_ptr<const RunInfo> m_run;
    Callbacks m_callbacks;
    LoadControl m_control;
    std::mutex m_mutex;            // guards the queue and serialises the callbacks
    std::vector<int32_t> m_queue;  // the next one last
    size_t m_running = 0;
    int64_t m_memoryLeft;
    std::vector<std::thread> m_threads;
};

}  // namespace rankscope::gui

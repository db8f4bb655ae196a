// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rankscope::gui {

/// Threads that help to paint a picture: the caller deals out rows and paints with them until none is left. Called from
/// one thread at a time.
class PaintCrew {
  public:
    /// `workers` counts the caller.
    explicit PaintCrew(size_t workers);
    ~PaintCrew();
    PaintCrew(const PaintCrew&) = delete;
    PaintCrew& operator=(const PaintCrew&) = delete;

    /// Calls paint(worker, item) once for each item below `items`, each worker one call at a time; returns when all
    /// have returned. `paint` must not throw.
    void paint(size_t items, const std::function<void(size_t worker, size_t item)>& paint);

  private:
    void help(size_t worker);
    void work(size_t worker);

    std::mutex m_mutex;  // guards m_open, m_atWork and m_stop; what follows them changes only while nobody is at work
    std::condition_variable m_begin, m_end;
    bool m_open = false;  // a thread that wakes too late leaves the picture to the others
    bool m_stop = false;
    size_t m_atWork = 0;
    const std::function<void(size_t, size_t)>* m_paint = nullptr;
    size_t m_items = 0;
    std::atomic<size_t> m_next{0};
    std::vector<std::thread> m_threads;
};

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/paint_crew.h"

namespace rankscope::gui {

PaintCrew::PaintCrew(size_t workers) {
    for (size_t worker = 1; worker < workers; ++worker) m_threads.emplace_back([this, worker] { help(worker); });
}

PaintCrew::~PaintCrew() {
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
    }
    m_begin.notify_all();
    for (std::thread& thread : m_threads) thread.join();
}

void PaintCrew::paint(size_t items, const std::function<void(size_t, size_t)>& paint) {
    {
        const std::lock_guard lock(m_mutex);
        m_paint = &paint;
        m_items = items;
        m_next = 0;
        m_open = true;
    }
    m_begin.notify_all();
    work(0);
    std::unique_lock lock(m_mutex);
    m_open = false;
    m_end.wait(lock, [&] { return m_atWork == 0; });
}

void PaintCrew::help(size_t worker) {
    std::unique_lock lock(m_mutex);
    while (true) {
        m_begin.wait(lock, [&] { return m_stop || (m_open && m_next < m_items); });
        if (m_stop) return;
        ++m_atWork;
        lock.unlock();
        work(worker);
        lock.lock();
        if (--m_atWork == 0) m_end.notify_one();
    }
}

void PaintCrew::work(size_t worker) {
    for (size_t item = m_next++; item < m_items; item = m_next++) (*m_paint)(worker, item);
}

}  // namespace rankscope::gui

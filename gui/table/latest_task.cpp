// SPDX-License-Identifier: Apache-2.0
#include "gui/table/latest_task.h"

namespace rankscope::gui {

LatestTask::LatestTask(QObject* parent) : QObject(parent), m_thread([this] { work(); }) {}

LatestTask::~LatestTask() {
    cancel();
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
    }
    m_wake.notify_one();
    m_thread.join();
}

void LatestTask::cancel() {
    const std::lock_guard lock(m_mutex);
    if (m_newest) *m_newest = true;
    m_waiting = {};
}

void LatestTask::push(std::shared_ptr<std::atomic<bool>> cancelled, Job job) {
    {
        const std::lock_guard lock(m_mutex);
        if (m_newest) *m_newest = true;
        m_newest = std::move(cancelled);
        m_waiting = std::move(job);
    }
    m_wake.notify_one();
}

void LatestTask::work() {
    for (;;) {
        Job job;
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait(lock, [this] { return m_stop || m_waiting; });
            if (m_stop) return;
            job = std::exchange(m_waiting, {});
        }
        try {
            job();
        } catch (const std::exception& error) {
            QMetaObject::invokeMethod(
                this, [this, message = QString::fromUtf8(error.what())] { emit failed(message); },
                Qt::QueuedConnection);
        }
    }
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/run/query_thread.h"

namespace rankscope::gui {

QueryThread::QueryThread(std::string file, QObject* parent)
    : QObject(parent), m_file(std::move(file)), m_thread([this] { work(); }) {}

QueryThread::~QueryThread() {
    {
        const std::lock_guard lock(m_mutex);
        m_stop = true;
        m_jobs.clear();
    }
    m_wake.notify_one();
    m_thread.join();
}

void QueryThread::push(Job job) {
    ++m_waiting;
    {
        const std::lock_guard lock(m_mutex);
        m_jobs.push_back(std::move(job));
    }
    m_wake.notify_one();
}

void QueryThread::work() {
    std::unique_ptr<store::TraceReader> reader;
    for (;;) {
        Job job;
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait(lock, [this] { return m_stop || !m_jobs.empty(); });
            if (m_stop) return;
            job = std::move(m_jobs.front());
            m_jobs.pop_front();
        }
        try {
            if (!reader)
                reader = std::make_unique<store::TraceReader>(m_file, store::WhenLocked{}, store::MisplacedRows::kept);
            job(*reader);
        } catch (const std::exception& error) {
            QMetaObject::invokeMethod(
                this, [this, message = QString::fromUtf8(error.what())] { emit failed(message); },
                Qt::QueuedConnection);
        }
        QMetaObject::invokeMethod(
            this, [this] { --m_waiting; }, Qt::QueuedConnection);  // behind the answer
    }
}

}  // namespace rankscope::gui

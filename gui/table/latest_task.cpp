// SPDX-License-Identifier: Apache-2.0
#include "gui/table/latest_task.h"

#include <QCoreApplication>
#include <utility>
#include <vector>

namespace rankscope::gui {
namespace {

/// Of objects that are gone; the GUI thread's only. Never destroyed: a process that ends without its application leaves
/// them running.
std::vector<std::thread>& leftRunning() {
    static auto* threads = new std::vector<std::thread>;
    return *threads;
}

void joinThem() {
    for (std::thread& thread : leftRunning()) thread.join();
    leftRunning().clear();
}

}  // namespace

LatestTask::LatestTask(QObject* parent) : QObject(parent) {
    m_shared->owner = this;
    m_thread = std::thread(work, m_shared);
}

LatestTask::~LatestTask() {
    cancel();
    bool isRunning;
    {
        const std::lock_guard lock(m_shared->mutex);
        m_shared->owner = nullptr;
        isRunning = m_shared->isRunning;
    }
    m_shared->wake.notify_one();
    if (!isRunning) {
        m_thread.join();
        return;
    }
    if (leftRunning().empty()) qAddPostRoutine(joinThem);  // before anything static goes that the work may use
    leftRunning().push_back(std::move(m_thread));
}

void LatestTask::cancel() {
    const std::lock_guard lock(m_shared->mutex);
    if (m_shared->newest) *m_shared->newest = true;
    m_shared->waiting = {};
}

void LatestTask::push(Flag cancelled, Job job) {
    {
        const std::lock_guard lock(m_shared->mutex);
        if (m_shared->newest) *m_shared->newest = true;
        m_shared->newest = std::move(cancelled);
        m_shared->waiting = std::move(job);
    }
    m_shared->wake.notify_one();
}

void LatestTask::work(const std::shared_ptr<Shared>& shared) {
    for (;;) {
        Job job;
        Flag cancelled;
        {
            std::unique_lock lock(shared->mutex);
            shared->isRunning = false;
            shared->wake.wait(lock, [&] { return !shared->owner || shared->waiting; });
            if (!shared->owner) return;
            job = std::exchange(shared->waiting, {});
            cancelled = shared->newest;
            shared->isRunning = true;
        }
        Answer answer;
        try {
            answer = job();
        } catch (const std::exception& error) {
            answer = [message = QString::fromUtf8(error.what())](LatestTask& task) { emit task.failed(message); };
        }
        job = {};                                   // what it holds goes before somebody waits for the thread
        const std::lock_guard lock(shared->mutex);  // the owner does not go meanwhile
        if (LatestTask* owner = shared->owner)
            QMetaObject::invokeMethod(
                owner,
                [owner, cancelled, answer = std::move(answer)] {
                    if (!*cancelled) answer(*owner);
                },
                Qt::QueuedConnection);
    }
}

}  // namespace rankscope::gui

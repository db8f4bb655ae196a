// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <QString>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace rankscope::gui {

/// A thread for work of which only the newest matters: a new task cancels the one that runs and takes the place of one
/// that waits.
class LatestTask : public QObject {
    Q_OBJECT

  public:
    explicit LatestTask(QObject* parent = nullptr);
    /// Cancels and waits.
    ~LatestTask() override;

    /// `work(cancelled)` runs on the thread and should end soon once `cancelled` is set; `done` gets its result on the
    /// GUI thread, unless a newer task was started or cancel() called by then. An exception of `work` becomes failed().
    template <typename Work, typename Done>
    void start(Work work, Done done) {
        auto cancelled = std::make_shared<std::atomic<bool>>(false);
        push(cancelled, [this, cancelled, work = std::move(work), done = std::move(done)]() mutable {
            auto result =
                std::make_shared<decltype(work(*cancelled))>(work(*cancelled));  // shared: a queued call is copied
            QMetaObject::invokeMethod(
                this,
                [cancelled, done, result] {
                    if (!*cancelled) done(std::move(*result));
                },
                Qt::QueuedConnection);
        });
    }
    void cancel();

  signals:
    void failed(QString message);

  private:
    using Job = std::function<void()>;
    void push(std::shared_ptr<std::atomic<bool>> cancelled, Job job);
    void work();

    std::mutex m_mutex;
    std::condition_variable m_wake;
    Job m_waiting;
    std::shared_ptr<std::atomic<bool>> m_newest;  // of the task started last
    bool m_stop = false;
    std::thread m_thread;
};

}  // namespace rankscope::gui

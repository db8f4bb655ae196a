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
    /// Cancels, and does not wait: work that still runs ends by itself, at the latest before the QCoreApplication does.
    ~LatestTask() override;

    /// `work(cancelled)` runs on the thread, holds what it needs, and should end soon once `cancelled` is set; `done`
    /// gets its result on the GUI thread, unless a newer task was started or cancel() called by then. An exception of
    /// `work` becomes failed(), under the same condition.
    template <typename Work, typename Done>
    void start(Work work, Done done) {
        auto cancelled = std::make_shared<std::atomic<bool>>(false);
        push(cancelled, [cancelled, work = std::move(work), done = std::move(done)]() mutable -> Answer {
            auto result =
                std::make_shared<decltype(work(*cancelled))>(work(*cancelled));  // shared: a queued call is copied
            return [done, result](LatestTask&) { done(std::move(*result)); };
        });
    }
    void cancel();

  signals:
    void failed(QString message);

  private:
    using Answer = std::function<void(LatestTask&)>;  // given on the GUI thread
    using Job = std::function<Answer()>;
    using Flag = std::shared_ptr<std::atomic<bool>>;

    /// What the thread has in common with the object, which it may outlive.
    struct Shared {
        std::mutex mutex;
        std::condition_variable wake;
        Job waiting;
        Flag newest;                  // of the task started last
        LatestTask* owner = nullptr;  // null: it is gone
        bool isRunning = false;
    };
    void push(Flag cancelled, Job job);
    static void work(const std::shared_ptr<Shared>& shared);

    std::shared_ptr<Shared> m_shared = std::make_shared<Shared>();
    std::thread m_thread;
};

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <QPointer>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "collector/store/reader.h"

namespace rankscope::gui {

/// Questions to a trace.db, answered one after the other on a thread of its own, so that no widget ever waits for a
/// disk.
class QueryThread : public QObject {
    Q_OBJECT

  public:
    explicit QueryThread(std::string file, QObject* parent = nullptr);
    /// Drops what is waiting and lets the running question end.
    ~QueryThread() override;

    /// `ask` runs on the thread; `answer` gets its result on the GUI thread, unless `receiver` is gone by then. An
    /// exception of `ask` becomes failed().
    template <typename Ask, typename Answer>
    void ask(QObject* receiver, Ask question, Answer answer) {
        push([this, receiver = QPointer<QObject>(receiver), question = std::move(question),
              answer = std::move(answer)](store::TraceReader& reader) mutable {
            auto result = question(reader);
            QMetaObject::invokeMethod(
                this,
                [receiver, answer = std::move(answer), result = std::move(result)]() mutable {
                    if (receiver) answer(std::move(result));
                },
                Qt::QueuedConnection);
        });
    }

    /// Questions whose answer has not been given yet. GUI thread only.
    int waiting() const noexcept { return m_waiting; }

  signals:
    void failed(QString message);

  private:
    using Job = std::function<void(store::TraceReader&)>;
    void push(Job job);
    void work();

    std::string m_file;
    std::mutex m_mutex;
    std::condition_variable m_wake;
    std::deque<Job> m_jobs;
    bool m_stop = false;
    int m_waiting = 0;  // GUI thread only
    std::thread m_thread;
};

}  // namespace rankscope::gui

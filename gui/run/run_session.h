// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <QTimer>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "gui/run/query_thread.h"
#include "gui/session/run_loader.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// One open run: reads what it is, then its events, off the GUI thread, into the model.
class RunSession : public QObject {
    Q_OBJECT

  public:
    RunSession(TimelineModel& model, QObject* parent = nullptr);
    ~RunSession() override;

    /// Returns at once; opened() or failed() follows. A file that another program holds is waited for, `patience` long
    /// where it is given.
    void open(const std::string& run, std::optional<std::chrono::seconds> patience);
    void cancel();
    bool isLoading() const noexcept { return m_loading; }
    /// Valid from opened() on.
    QueryThread& queries() { return *m_queries; }
    /// Questions to the database that are not answered yet.
    bool isAsking() const noexcept { return m_queries && m_queries->waiting() > 0; }
    void prefer(const std::vector<int32_t>& ranks);

  signals:
    void opened();
    /// Another program holds the file: said once a second.
    void waiting(QString message);
    /// The run cannot be shown at all.
    void failed(QString message);
    /// Something of it cannot; the rest is.
    void damaged(QString message);
    /// 0..1
    void progressed(double share);
    void loaded(bool cancelled);

  private:
    bool whenLocked(const std::string& file, std::optional<std::chrono::seconds> patience,
                    std::chrono::milliseconds waited);
    void start(std::shared_ptr<const RunInfo> run, std::map<int32_t, ActivityBins> lines);
    void loadingEnded(bool cancelled);
    void reportDamage();
    void report(const QString& message);

    TimelineModel& m_model;
    std::thread m_opening;
    std::atomic<bool> m_leaving{false};
    int64_t m_secondsWaited = -1;                                                    // opening thread only
    std::map<std::pair<std::string, std::string>, std::vector<int32_t>> m_troubles;  // ranks by reason and hint
    std::unique_ptr<RunLoader> m_loader;
    std::unique_ptr<QueryThread> m_queries;
    QTimer m_progress;
    bool m_loading = false;
};

}  // namespace rankscope::gui

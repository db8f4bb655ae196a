// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QTimer>
#include <QTreeWidget>
#include <QWidget>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "gui/run/run_session.h"
#include "gui/session/range_statistics.h"
#include "gui/table/latest_task.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// Statistics of the selected time: what each rank did, why it was idle, the kernels and collectives that took longest.
/// A row goes to its worst event.
class RangePanel : public QWidget {
    Q_OBJECT

  public:
    /// What the ranks did is beside the other lists, or one more of them where there is little room.
    enum class Layout { beside, oneList };
    RangePanel(TimelineModel& model, RunSession& session, Layout layout, QWidget* parent = nullptr);

    /// Nothing is being counted.
    bool isSettled() const { return !m_rest.isActive() && !m_asked; }

  signals:
    /// An event was gone to.
    void jumped();
    /// Other numbers are shown.
    void counted();

  private:
    void selected();
    void ask();
    void showIfAnswered();
    void showActivity();
    void showTables();
    void fillRanks();
    void fillIdle();
    void fillGaps();
    void makeRoomForRanks();

    // Of one question; from two threads.
    struct Answers {
        std::optional<RangeActivity> activity;
        std::optional<RangeTables> tables;
        std::string trouble;  // why the tables are empty
    };

    TimelineModel& m_model;
    RunSession& m_session;
    LatestTask m_task;
    QTimer m_rest;  // the hand rests: the selection has not changed for a moment
    RangeActivity m_activity;
    RangeTables m_tables;
    std::shared_ptr<std::atomic<uint64_t>> m_newest;  // number of the question asked last
    std::optional<Answers> m_asked;                   // what has come of the answers that are under way
    QSplitter* m_lists;
    bool m_divided = false;  // by the user
    QLabel* m_title;
    QLabel* m_idle;
    QPushButton* m_copy;
    QTreeWidget* m_ranks;
    QTreeWidget* m_kernels;
    QTreeWidget* m_collectives;
    QTreeWidget* m_gaps;
};

}  // namespace rankscope::gui

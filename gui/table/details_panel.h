// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTreeWidget>
#include <QWidget>
#include <atomic>
#include <memory>

#include "gui/run/run_session.h"
#include "gui/session/event_details.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// Everything that is known of the selected event. Lines that speak of another event go to it.
class DetailsPanel : public QWidget {
    Q_OBJECT

  public:
    DetailsPanel(TimelineModel& model, RunSession& session, QWidget* parent = nullptr);

  signals:
    /// An event was gone to.
    void jumped();

  private:
    void ask();
    void show(EventDetails details);
    void goTo(const QTreeWidgetItem* item);

    TimelineModel& m_model;
    RunSession& m_session;
    EventDetails m_details;
    std::shared_ptr<std::atomic<uint64_t>>
        m_newest;  // number of the question asked last; shared with the thread, which skips older ones
    QLabel* m_title;
    QTreeWidget* m_lines;
    QPushButton* m_copy;
    QPushButton* m_copySql;
};

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <set>

#include "gui/run/run_session.h"
#include "gui/session/event_links.h"

namespace rankscope::gui {

/// Finds, off the GUI thread, what the selected event has to do with others, and shows it: flow lines, the members of
/// its collective, a sentence.
class LinkFollower : public QObject {
    Q_OBJECT

  public:
    LinkFollower(TimelineModel& model, RunSession& session, QObject* parent = nullptr);

    /// Goes to what caused the selected event (-1), or to what it causes or the next member of its collective (1).
    void follow(int direction);

  signals:
    /// Of the selected event's collective or message.
    void described(QString sentence);

  private:
    void ask();
    void show();
    /// Shows what was missing when its rank arrives.
    void showArrived();

    TimelineModel& m_model;
    RunSession& m_session;
    EventLinks m_links;
    EventLink m_asked;            // answers to older questions are dropped
    std::set<int32_t> m_awaited;  // ranks of events that are linked and not loaded yet
};

}  // namespace rankscope::gui

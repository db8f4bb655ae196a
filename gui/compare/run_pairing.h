// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QObject>
#include <optional>

#include "gui/session/step_alignment.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// Keeps the views of two runs at the same place of the same step: where one is moved or zoomed, or time is selected in
/// it, the other follows.
class RunPairing : public QObject {
    Q_OBJECT

  public:
    RunPairing(TimelineModel& a, TimelineModel& b, QObject* parent = nullptr);

  signals:
    /// Both runs are open.
    void paired();

  private:
    void pair();
    void setRooms();
    void follow(Side leader);
    void followSelection(Side leader);
    TimelineModel& model(Side side) { return side == Side::a ? m_a : m_b; }

    TimelineModel& m_a;
    TimelineModel& m_b;
    std::optional<StepAlignment> m_alignment;
    bool m_following = false;  // what the follower says is not passed back
};

}  // namespace rankscope::gui

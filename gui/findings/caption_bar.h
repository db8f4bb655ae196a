// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QToolButton>
#include <QWidget>

#include "gui/findings/finding_tour.h"

namespace rankscope::gui {

/// Above the timeline, while a finding is looked at: what it says, and what of the picture shows it. Makes a picture of
/// the window readable on its own.
class CaptionBar : public QWidget {
    Q_OBJECT

  public:
    CaptionBar(TimelineModel& model, FindingTour& tour, QWidget* parent = nullptr);

  private:
    void fill();
    void fillSteps();

    TimelineModel& m_model;
    FindingTour& m_tour;
    QLabel* m_text;
    QLabel* m_steps;
    QToolButton *m_before, *m_next;
};

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QLabel>
#include <QWidget>

#include "gui/view/palette.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// What must be known before the picture is believed: what was lost, how exact the clocks are; and what the colours mean.
class HeadBar : public QWidget {
    Q_OBJECT

public:
    explicit HeadBar(TimelineModel& model, QWidget* parent = nullptr);

private:
    void fill();

    TimelineModel& m_model;
    QLabel* m_facts;
};

}  // namespace rankscope::gui

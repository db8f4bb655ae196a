// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QComboBox>
#include <memory>

#include "gui/charts/grid_view.h"
#include "gui/charts/series/step_charts.h"

namespace rankscope::gui {

/// The straggler map with a choice of what it shows.
class StragglerPanel : public QWidget {
    Q_OBJECT

  public:
    explicit StragglerPanel(QWidget* parent = nullptr);
    void setSteps(std::shared_ptr<const StepTable> steps);
    GridView& view() { return *m_view; }

  private:
    void fill();

    QComboBox* m_measure;
    GridView* m_view;
    std::shared_ptr<const StepTable> m_steps;
};

}  // namespace rankscope::gui

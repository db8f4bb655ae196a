// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QComboBox>
#include <functional>

#include "gui/charts/pipeline_view.h"

namespace rankscope::gui {

/// The pipeline view with a choice of pipeline and step.
class PipelinePanel : public QWidget {
    Q_OBJECT

  public:
    explicit PipelinePanel(QWidget* parent = nullptr);
    void setChart(PipelineChart chart);
    PipelineView& view() { return *m_view; }

  signals:
    /// Another pipeline or step is to be shown.
    void wanted(size_t chain, int step);

  private:
    QWidget* m_choices;
    QComboBox* m_chains;
    QComboBox* m_steps;
    PipelineView* m_view;
};

}  // namespace rankscope::gui

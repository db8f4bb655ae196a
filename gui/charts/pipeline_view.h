// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/charts/chart_view.h"
#include "gui/charts/series/pipeline_chart.h"

namespace rankscope::gui {

/// Draws a PipelineChart: a row per stage, numbered boxes of forward and backward passes, the bubble shaded.
class PipelineView : public ChartView {
    Q_OBJECT

  public:
    using ChartView::ChartView;
    void setChart(PipelineChart chart);
    /// Where a pass is drawn; for tests.
    QRectF passArea(size_t stage, const PipelinePass& pass) const;

  protected:
    void paintChart(QPainter& painter, QRectF area) override;
    QString tipAt(QPointF position) const override;
    ChartTarget targetAt(QPointF position) const override;

  private:
    QColor passColour(PassKind kind) const;
    double xOf(int64_t ns) const;
    QRectF stageArea(size_t stage) const;
    const PipelinePass* passAt(QPointF position, size_t* stage) const;
    void paintStage(QPainter& painter, size_t stage);
    void paintRuler(QPainter& painter);
    void paintLegend(QPainter& painter, QRectF area);

    PipelineChart m_chart;
    QRectF m_rows;
};

}  // namespace rankscope::gui

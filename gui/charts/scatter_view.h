// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gui/charts/chart_view.h"
#include "gui/charts/series/scatter_chart.h"

namespace rankscope::gui {

/// Draws a ScatterChart over two logarithmic axes, with a legend of its lines.
class ScatterView : public ChartView {
    Q_OBJECT

  public:
    using ChartView::ChartView;
    void setChart(ScatterChart chart);
    /// Where a point is drawn; for tests.
    QPointF placeOf(double x, double y) const;

  protected:
    void paintChart(QPainter& painter, QRectF area) override;
    QString tipAt(QPointF position) const override;
    ChartTarget targetAt(QPointF position) const override;

  private:
    const ScatterPoint* pointAt(QPointF position) const;
    void measure();
    void paintGrid(QPainter& painter);
    void paintLines(QPainter& painter);
    void paintPoints(QPainter& painter);
    void paintPointLabels(QPainter& painter);
    void paintLegend(QPainter& painter, QRectF area);

    ScatterChart m_chart;
    double m_xLow = 1, m_xHigh = 10, m_yLow = 1, m_yHigh = 10;
    QRectF m_plot;
};

}  // namespace rankscope::gui

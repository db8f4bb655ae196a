// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QImage>
#include <memory>
#include <optional>

#include "gui/charts/chart_view.h"
#include "gui/charts/series/grid_chart.h"

namespace rankscope::gui {

/// Draws a GridChart: cells, axes, colour scale, and bars above. A frame costs a copy of an image of one pixel per
/// cell; where there are more cells than pixels, a pixel shows the most striking of its cells, so that one slow rank
/// among a thousand is not averaged away.
class GridView : public ChartView {
    Q_OBJECT

  public:
    using ChartView::ChartView;
    void setChart(GridChart chart);
    /// Where a cell is drawn; for tests.
    QRectF cellArea(size_t column, size_t row) const;

  protected:
    void paintChart(QPainter& painter, QRectF area) override;
    QString tipAt(QPointF position) const override;
    ChartTarget targetAt(QPointF position) const override;

  private:
    struct Cell {
        size_t column = 0, row = 0;
    };
    std::optional<Cell> cellAt(QPointF position) const;
    size_t columnCount() const noexcept { return m_chart->columns.labels.size(); }
    size_t rowCount() const noexcept { return m_chart->rows.labels.size(); }
    QRectF placeCells(const QFontMetricsF& metrics, QRectF area) const;
    double shareOf(float value) const;  ///< 0..1 on the colour scale
    QColor cellColour(double share) const;
    void makeImage(QSize pixels);
    void paintAxes(QPainter& painter);
    void paintScale(QPainter& painter, QRectF area);
    void paintTotals(QPainter& painter);
    void paintPointer(QPainter& painter);

    std::unique_ptr<GridChart> m_chart = std::make_unique<GridChart>();
    float m_low = 0, m_high = 1;
    QImage m_image;
    bool m_imageIsDark = false;
    QSize m_imageFor;  // pixels there were
    QRectF m_cells;
};

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/scatter_view.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

namespace rankscope::gui {
namespace {

constexpr double kNear = 8;  // pixels from a point that still mean it

// Series differ in shape as well as in colour.
QPolygonF shapeOf(int series, QPointF at, double r) {
    QPolygonF shape;
    const int corners[] = {0, 4, 3, -4, -3, 6, 5};
    const int kind = corners[static_cast<size_t>(series) % std::size(corners)];
    const int count = kind == 0 ? 16 : std::abs(kind);
    const double turn = kind == -4 ? 0 : kind == 4 ? M_PI / 4 : kind == -3 ? M_PI / 2 : -M_PI / 2;
    for (int i = 0; i < count; ++i)
        shape << at + QPointF(std::cos(turn + 2 * M_PI * i / count), std::sin(turn + 2 * M_PI * i / count)) * r;
    return shape;
}

void widen(double& low, double& high, double by) {
    low /= by;
    high *= by;
    if (high < 10 * low) {
        const double middle = std::sqrt(low * high);
        low = middle / std::sqrt(10.0);
        high = middle * std::sqrt(10.0);
    }
}

}  // namespace

void ScatterView::setChart(ScatterChart chart) {
    m_chart = std::move(chart);
    measure();
    setTexts(m_chart.nothing, m_chart.note);
}

void ScatterView::measure() {
    m_xLow = m_yLow = INFINITY;
    m_xHigh = m_yHigh = 0;
    const auto take = [&](double x, double y) {
        m_xLow = std::min(m_xLow, x);
        m_xHigh = std::max(m_xHigh, x);
        m_yLow = std::min(m_yLow, y);
        m_yHigh = std::max(m_yHigh, y);
    };
    for (const ScatterPoint& point : m_chart.points) take(point.x, point.y);
    for (const ScatterLine& line : m_chart.lines)
        for (const auto& [x, y] : line.points)
            if (x > 0 && y > 0 && (m_chart.points.empty() || y > 0.2 * m_yLow)) take(x, y);
    if (!(m_xLow <= m_xHigh) || !(m_yLow <= m_yHigh)) m_xLow = m_yLow = m_xHigh = m_yHigh = 1;
    widen(m_xLow, m_xHigh, 1.2);
    widen(m_yLow, m_yHigh, 1.25);
    // A share ends at 100 %.
    if (m_chart.yQuantity == Quantity::share) m_yHigh = std::min(m_yHigh, 1.3);
}

QPointF ScatterView::placeOf(double x, double y) const {
    return {m_plot.left() + m_plot.width() * std::log(x / m_xLow) / std::log(m_xHigh / m_xLow),
            m_plot.bottom() - m_plot.height() * std::log(y / m_yLow) / std::log(m_yHigh / m_yLow)};
}

void ScatterView::paintChart(QPainter& painter, QRectF area) {
    const QFontMetricsF metrics(painter.font());
    double longest = 0;
    for (const ScatterLine& line : m_chart.lines)
        longest = std::max(longest, metrics.horizontalAdvance(chartText(line.name)));
    for (const std::string& name : m_chart.series)
        longest = std::max(longest, metrics.horizontalAdvance(chartText(name)));
    const double legend = std::min(longest + 40, area.width() * 0.4);
    m_plot = area.adjusted(metrics.horizontalAdvance("000 GB/s") + metrics.lineSpacing() + 8, 4, -legend - 8,
                           -2 * metrics.lineSpacing() - 8);
    if (m_plot.width() < 40 || m_plot.height() < 30) return;
    painter.setRenderHint(QPainter::Antialiasing);
    paintGrid(painter);
    painter.save();
    painter.setClipRect(m_plot);
    paintLines(painter);
    paintPoints(painter);
    painter.restore();
    paintLegend(painter, QRectF(m_plot.right() + 12, m_plot.top(), legend - 4, area.height()));
}

void ScatterView::paintGrid(QPainter& painter) {
    const QFontMetricsF metrics(painter.font());
    const QColor lines = colour(colours().grid), text = colour(colours().text);
    for (const double tick : quantityTicks(m_chart.xQuantity, m_xLow, m_xHigh, true,
                                           static_cast<size_t>(std::max(2.0, m_plot.width() / 85)))) {
        const double x = placeOf(tick, m_yLow).x();
        painter.setPen(lines);
        painter.drawLine(QPointF(x, m_plot.top()), QPointF(x, m_plot.bottom()));
        painter.setPen(text);
        painter.drawText(QRectF(x - 60, m_plot.bottom() + 3, 120, metrics.lineSpacing()), Qt::AlignHCenter,
                         QString::fromStdString(quantityText(m_chart.xQuantity, tick)));
    }
    for (const double tick : quantityTicks(m_chart.yQuantity, m_yLow, m_yHigh, true,
                                           static_cast<size_t>(std::max(2.0, m_plot.height() / 30)))) {
        const double y = placeOf(m_xLow, tick).y();
        painter.setPen(lines);
        painter.drawLine(QPointF(m_plot.left(), y), QPointF(m_plot.right(), y));
        painter.setPen(text);
        painter.drawText(QRectF(m_plot.left() - 206, y - metrics.lineSpacing() / 2, 200, metrics.lineSpacing()),
                         Qt::AlignRight | Qt::AlignVCenter,
                         QString::fromStdString(quantityText(m_chart.yQuantity, tick)));
    }
    painter.setPen(colour(colours().dimText));
    painter.drawText(
        QRectF(m_plot.left(), m_plot.bottom() + 3 + metrics.lineSpacing(), m_plot.width(), metrics.lineSpacing() + 2),
        Qt::AlignHCenter, metrics.elidedText(chartText(m_chart.xTitle), Qt::ElideRight, m_plot.width()));
    painter.save();
    painter.translate(8 + metrics.ascent() / 2, m_plot.center().y());
    painter.rotate(-90);
    painter.drawText(
        QRectF(-200, -metrics.lineSpacing() / 2, 400, metrics.lineSpacing()), Qt::AlignCenter,
        metrics.elidedText(chartText(m_chart.yTitle), Qt::ElideRight, m_plot.height() + metrics.lineSpacing()));
    painter.restore();
}

void ScatterView::paintLines(QPainter& painter) {
    painter.setBrush(Qt::NoBrush);
    for (const ScatterLine& line : m_chart.lines) {
        QPainterPath path;
        bool first = true;
        for (const auto& [x, y] : line.points) {
            if (!(x > 0) || !(y > 0)) continue;
            first ? path.moveTo(placeOf(x, y)) : path.lineTo(placeOf(x, y));
            first = false;
        }
        painter.setPen(
            QPen(seriesColour(line.series), line.dashed ? 1.3 : 1.8, line.dashed ? Qt::DashLine : Qt::SolidLine));
        painter.drawPath(path);
    }
}

void ScatterView::paintPoints(QPainter& painter) {
    const ScatterPoint* under = pointAt(pointer());
    for (const ScatterPoint& point : m_chart.points) {
        QColor fill = seriesColour(point.series);
        fill.setAlphaF(0.65f);
        painter.setPen(Qt::NoPen);
        painter.setBrush(fill);
        // A point that stands for many is larger, by the logarithm.
        painter.drawPolygon(shapeOf(point.series, placeOf(point.x, point.y),
                                    std::min(3.2 + 0.8 * std::log10(static_cast<double>(point.count)), 7.0)));
    }
    paintPointLabels(painter);
    if (!under) return;
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(colour(colours().mark), 2));
    painter.drawEllipse(placeOf(under->x, under->y), 8, 8);
}

// Those that find room, the first first.
void ScatterView::paintPointLabels(QPainter& painter) {
    const QFontMetricsF metrics(painter.font());
    std::vector<QRectF> placed;
    painter.setPen(colour(colours().text));
    for (const ScatterPoint& point : m_chart.points) {
        if (point.label.empty()) continue;
        const QString label = chartText(point.label);
        const QPointF at = placeOf(point.x, point.y);
        const QSizeF size(metrics.horizontalAdvance(label) + 2, metrics.height());
        // On the side of the point that is within the picture.
        const bool left = at.x() + 8 + size.width() > m_plot.right();
        const QRectF tag(QPointF(left ? at.x() - 8 - size.width() : at.x() + 8, at.y() + 2), size);
        if (std::any_of(placed.begin(), placed.end(), [&](const QRectF& other) { return other.intersects(tag); }))
            continue;
        placed.push_back(tag);
        painter.drawText(tag, Qt::AlignCenter, label);
    }
}

void ScatterView::paintLegend(QPainter& painter, QRectF area) {
    const QFontMetricsF metrics(painter.font());
    const double line = metrics.lineSpacing() + 2;
    double y = area.top() + line / 2;
    const auto entry = [&](const QString& name) {
        painter.setPen(colour(colours().text));
        painter.drawText(QRectF(area.left() + 26, y - line / 2, area.width() - 26, line),
                         Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(name, Qt::ElideRight, area.width() - 26));
        y += line;
    };
    for (int series = 0; series < static_cast<int>(m_chart.series.size()) && y < area.bottom(); ++series) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(seriesColour(series));
        painter.drawPolygon(shapeOf(series, {area.left() + 10, y}, 4.5));
        entry(chartText(m_chart.series[static_cast<size_t>(series)]));
        for (const ScatterLine& curve : m_chart.lines) {
            if (curve.series != series || y >= area.bottom()) continue;
            painter.setPen(QPen(seriesColour(series), 1.6, curve.dashed ? Qt::DashLine : Qt::SolidLine));
            painter.drawLine(QPointF(area.left() + 1, y), QPointF(area.left() + 20, y));
            entry(chartText(curve.name));
        }
    }
}

const ScatterPoint* ScatterView::pointAt(QPointF position) const {
    const ScatterPoint* nearest = nullptr;
    double best = kNear * kNear;
    for (const ScatterPoint& point : m_chart.points) {
        const QPointF away = placeOf(point.x, point.y) - position;
        if (const double distance = QPointF::dotProduct(away, away); distance < best) {
            best = distance;
            nearest = &point;
        }
    }
    return nearest;
}

QString ScatterView::tipAt(QPointF position) const {
    const ScatterPoint* point = pointAt(position);
    if (!point) return {};
    QString text = chartText(m_chart.series[static_cast<size_t>(point->series)]);
    if (!point->label.empty())
        text += ", " + chartText(point->label);
    else if (point->target.valid())
        text += QString(", rank %1").arg(point->target.rank);
    text += QString("\n%1: %2\n%3: %4")
                .arg(chartText(m_chart.xTitle), QString::fromStdString(quantityText(m_chart.xQuantity, point->x)),
                     chartText(m_chart.yTitle), QString::fromStdString(quantityText(m_chart.yQuantity, point->y)));
    return point->count > 1 ? text + QString("\n%1 measurements here").arg(point->count) : text;
}

ChartTarget ScatterView::targetAt(QPointF position) const {
    const ScatterPoint* point = pointAt(position);
    return point ? point->target : ChartTarget{};
}

}  // namespace rankscope::gui

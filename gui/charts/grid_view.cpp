// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/grid_view.h"

#include <QPainter>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace rankscope::gui {
namespace {

constexpr double kScaleWidth = 84, kTickGap = 6, kTotalsHeight = 44;

// Sequential: Matplotlib's cividis, made for people with any colour vision (Nunez et al., PLOS ONE 13(7), 2018), at six
// points.
constexpr std::array<Rgb, 6> kCividis{0xff00224e, 0xff35456c, 0xff666970, 0xff948e77, 0xffc8b866, 0xfffee838};

// How many cells lie between labels that need `room` cells each.
size_t labelStride(const GridAxis& axis, double room) {
    const auto cells = static_cast<size_t>(std::ceil(std::clamp(room, 1.0, 1e6)));
    if (axis.byTwos) return std::bit_ceil(cells);
    for (size_t decade = 1;; decade *= 10)
        for (const size_t factor : {1, 2, 5})
            if (decade * factor >= cells) return decade * factor;
}

Rgb along(const std::array<Rgb, 6>& colours, double share) {
    const double at = std::clamp(share, 0.0, 1.0) * (colours.size() - 1);
    const auto lower = std::min(static_cast<size_t>(at), colours.size() - 2);
    return blend(colours[lower], colours[lower + 1], static_cast<float>(at - static_cast<double>(lower)));
}

}  // namespace

void GridView::setChart(GridChart chart) {
    m_chart = std::make_unique<GridChart>(std::move(chart));
    m_low = INFINITY;
    m_high = -INFINITY;
    for (const float value : m_chart->values) {
        if (std::isnan(value)) continue;
        m_low = std::min(m_low, value);
        m_high = std::max(m_high, value);
    }
    if (m_chart->scale == GridChart::Scale::diverging) {
        // Differences below 5 % are to look like what they are: noise.
        m_high = std::max({std::fabs(m_low), std::fabs(m_high), 0.05f});
        m_low = -m_high;
    } else if (m_chart->scale == GridChart::Scale::linear) {
        m_low = m_chart->quantity == Quantity::nanoseconds && m_low > 0.5f * m_high ? m_low : 0;
        if (!(m_high > m_low)) m_low = 0;
    } else if (!(m_high > m_low)) {
        m_low = m_high / 2;
    }
    m_image = {};
    setTexts(m_chart->nothing, m_chart->note);
}

double GridView::shareOf(float value) const {
    if (m_chart->scale == GridChart::Scale::logarithmic)
        return std::log(static_cast<double>(value) / m_low) / std::log(static_cast<double>(m_high) / m_low);
    return m_high > m_low ? (static_cast<double>(value) - m_low) / (static_cast<double>(m_high) - m_low) : 0.5;
}

QColor GridView::cellColour(double share) const {
    if (m_chart->scale == GridChart::Scale::diverging) {
        const Rgb middle = isDark() ? 0xff3a3f47 : 0xfff2f2f2;
        return share < 0.5
                   ? colour(blend(middle, isDark() ? 0xff56b4e9 : 0xff0072b2, static_cast<float>(1 - 2 * share)))
                   : colour(blend(middle, isDark() ? 0xffffa94d : 0xffd55e00, static_cast<float>(2 * share - 1)));
    }
    // What is much stands out from the background: dark on white, bright on black.
    return colour(along(kCividis, isDark() ? 0.15 + 0.85 * share : 1 - share));
}

void GridView::makeImage(QSize pixels) {
    m_imageIsDark = isDark();
    m_imageFor = pixels;
    const size_t wide = std::min(columnCount(), static_cast<size_t>(std::max(1, pixels.width()))),
                 high = std::min(rowCount(), static_cast<size_t>(std::max(1, pixels.height())));
    const bool diverging = m_chart->scale == GridChart::Scale::diverging;
    std::vector<float> striking(wide * high, GridChart::kNothing);
    for (size_t row = 0; row < rowCount(); ++row) {
        for (size_t column = 0; column < columnCount(); ++column) {
            const float value = m_chart->at(column, row);
            float& shown = striking[row * high / rowCount() * wide + column * wide / columnCount()];
            if (std::isnan(shown) || (diverging ? std::fabs(value) > std::fabs(shown) : value > shown)) shown = value;
        }
    }
    m_image = QImage(static_cast<int>(wide), static_cast<int>(high), QImage::Format_RGB32);
    for (size_t row = 0; row < high; ++row) {
        auto* line = reinterpret_cast<Rgb*>(m_image.scanLine(static_cast<int>(row)));
        for (size_t column = 0; column < wide; ++column) {
            const float value = striking[row * wide + column];
            line[column] = std::isnan(value) ? colours().alternate : cellColour(shareOf(value)).rgb();
        }
    }
}

QRectF GridView::placeCells(const QFontMetricsF& metrics, QRectF area) const {
    double widest = metrics.horizontalAdvance("0");
    for (const std::string& tick : m_chart->rows.ticks)
        widest = std::max(widest, metrics.horizontalAdvance(QString::fromStdString(tick)));
    const double left = metrics.lineSpacing() + widest + 2 * kTickGap, bottom = 2 * metrics.lineSpacing() + kTickGap;
    QRectF cells = area.adjusted(left, m_chart->columnTotals.empty() ? 4 : kTotalsHeight, -kScaleWidth, -bottom);
    // A matrix of ranks is square, else a block of it would not look like one.
    if (m_chart->columns.labels == m_chart->rows.labels) {
        const double side = std::min(cells.width(), cells.height());
        cells.setSize({side, side});
    }
    return cells;
}

void GridView::paintChart(QPainter& painter, QRectF area) {
    m_cells = placeCells(QFontMetricsF(painter.font()), area);
    if (m_cells.width() < 10 || m_cells.height() < 10 || columnCount() == 0 || rowCount() == 0) return;
    const QSize pixels = (m_cells.size() * devicePixelRatioF()).toSize();
    if (m_image.isNull() || m_imageIsDark != isDark() || m_imageFor != pixels) makeImage(pixels);
    painter.drawImage(m_cells, m_image);
    const double wide = m_cells.width() / static_cast<double>(columnCount()),
                 high = m_cells.height() / static_cast<double>(rowCount());
    if (wide >= 6 && high >= 6) {
        painter.setPen(QPen(colour(colours().background), 1));
        for (size_t i = 1; i < columnCount(); ++i)
            painter.drawLine(QPointF(m_cells.left() + wide * static_cast<double>(i), m_cells.top()),
                             QPointF(m_cells.left() + wide * static_cast<double>(i), m_cells.bottom()));
        for (size_t i = 1; i < rowCount(); ++i)
            painter.drawLine(QPointF(m_cells.left(), m_cells.top() + high * static_cast<double>(i)),
                             QPointF(m_cells.right(), m_cells.top() + high * static_cast<double>(i)));
    }
    painter.setPen(colour(colours().grid));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(m_cells.adjusted(-1, -1, 1, 1));  // outside: of many ranks the first has a single line of pixels
    paintAxes(painter);
    paintTotals(painter);
    paintScale(painter, QRectF(m_cells.right() + 14, m_cells.top(), kScaleWidth - 14, m_cells.height()));
    paintPointer(painter);
}

void GridView::paintAxes(QPainter& painter) {
    const QFontMetricsF metrics(painter.font());
    const double wide = m_cells.width() / static_cast<double>(columnCount()),
                 high = m_cells.height() / static_cast<double>(rowCount());
    painter.setPen(colour(colours().text));
    double widest = 0;
    for (const std::string& tick : m_chart->columns.ticks)
        widest = std::max(widest, metrics.horizontalAdvance(QString::fromStdString(tick)));
    const size_t every = labelStride(m_chart->columns, (widest + 12) / wide);
    for (size_t i = 0; i < columnCount(); i += every) {
        const double x = m_cells.left() + wide * (static_cast<double>(i) + (m_chart->columnTotals.empty() ? 0.5 : 0));
        painter.drawText(QRectF(x - widest, m_cells.bottom() + 3, 2 * widest, metrics.lineSpacing()), Qt::AlignHCenter,
                         QString::fromStdString(m_chart->columns.ticks[i]));
    }
    const size_t everyRow = labelStride(m_chart->rows, (metrics.lineSpacing() + 1) / high);
    for (size_t i = 0; i < rowCount(); i += everyRow) {
        const double y = m_cells.top() + high * (static_cast<double>(i) + 0.5);
        painter.drawText(
            QRectF(m_cells.left() - 200 - kTickGap, y - metrics.lineSpacing() / 2, 200, metrics.lineSpacing()),
            Qt::AlignRight | Qt::AlignVCenter, QString::fromStdString(m_chart->rows.ticks[i]));
    }
    painter.setPen(colour(colours().dimText));
    painter.drawText(QRectF(m_cells.left(), m_cells.bottom() + 3 + metrics.lineSpacing(), m_cells.width(),
                            metrics.lineSpacing() + 2),
                     Qt::AlignHCenter, chartText(m_chart->columns.title));
    painter.save();
    painter.translate(8 + metrics.ascent() / 2, m_cells.center().y());
    painter.rotate(-90);
    painter.drawText(QRectF(-200, -metrics.lineSpacing() / 2, 400, metrics.lineSpacing()), Qt::AlignCenter,
                     chartText(m_chart->rows.title));
    painter.restore();
}

void GridView::paintScale(QPainter& painter, QRectF area) {
    const QFontMetricsF metrics(painter.font());
    const QRectF bar(area.left(), area.top(), 12, area.height());
    for (int y = 0; y < static_cast<int>(bar.height()); ++y)
        painter.fillRect(QRectF(bar.left(), bar.bottom() - y - 1, bar.width(), 1.5), cellColour(y / bar.height()));
    painter.setPen(colour(colours().text));
    const bool logarithmic = m_chart->scale == GridChart::Scale::logarithmic;
    const auto most = static_cast<size_t>(std::clamp(bar.height() / (1.5 * metrics.lineSpacing()), 3.0, 8.0));
    for (const double tick : quantityTicks(m_chart->quantity, m_low, m_high, logarithmic, most)) {
        if (m_chart->quantity == Quantity::count && tick != std::floor(tick)) continue;
        const double y = bar.bottom() - bar.height() * shareOf(static_cast<float>(tick));
        const QString sign = m_chart->scale == GridChart::Scale::diverging && tick > 1e-9 ? "+" : "";
        painter.drawText(
            QRectF(bar.right() + 4, y - metrics.lineSpacing() / 2, area.width(), metrics.lineSpacing()),
            Qt::AlignLeft | Qt::AlignVCenter,
            sign + QString::fromStdString(quantityText(m_chart->quantity, std::fabs(tick) < 1e-9 ? 0 : tick)));
    }
}

void GridView::paintTotals(QPainter& painter) {
    if (m_chart->columnTotals.empty()) return;
    const double most = *std::max_element(m_chart->columnTotals.begin(), m_chart->columnTotals.end());
    if (!(most > 0)) return;
    const double wide = m_cells.width() / static_cast<double>(columnCount());
    for (size_t i = 0; i < columnCount(); ++i) {
        const double total = m_chart->columnTotals[i];
        if (!(total > 0)) continue;
        const double height = std::max(1.5, (kTotalsHeight - 8) * total / most);
        painter.fillRect(QRectF(m_cells.left() + wide * static_cast<double>(i) + 0.5, m_cells.top() - 3 - height,
                                std::max(1.0, wide - 1), height),
                         seriesColour(0));
    }
}

void GridView::paintPointer(QPainter& painter) {
    const auto cell = cellAt(pointer());
    if (!cell) return;
    painter.setPen(QPen(colour(colours().mark), 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(cellArea(cell->column, cell->row));
}

QRectF GridView::cellArea(size_t column, size_t row) const {
    const double wide = m_cells.width() / static_cast<double>(columnCount()),
                 high = m_cells.height() / static_cast<double>(rowCount());
    return {m_cells.left() + wide * static_cast<double>(column), m_cells.top() + high * static_cast<double>(row), wide,
            high};
}

std::optional<GridView::Cell> GridView::cellAt(QPointF position) const {
    if (!m_cells.contains(position) || columnCount() == 0 || rowCount() == 0) return std::nullopt;
    const auto column =
        static_cast<size_t>((position.x() - m_cells.left()) / m_cells.width() * static_cast<double>(columnCount()));
    const auto row =
        static_cast<size_t>((position.y() - m_cells.top()) / m_cells.height() * static_cast<double>(rowCount()));
    return Cell{std::min(column, columnCount() - 1), std::min(row, rowCount() - 1)};
}

QString GridView::tipAt(QPointF position) const {
    const auto cell = cellAt(position);
    if (!cell) return {};
    const float value = m_chart->at(cell->column, cell->row);
    const QString title = chartText(m_chart->valueTitle);
    const QString sign = m_chart->scale == GridChart::Scale::diverging && value > 0 ? "+" : "";
    const QString text =
        std::isnan(value) ? "none"
                          : sign + QString::fromStdString(quantityText(m_chart->quantity, static_cast<double>(value)));
    const bool matrix = m_chart->columns.labels == m_chart->rows.labels;
    const QString where = chartText(m_chart->rows.labels[cell->row]) + (matrix ? " to " : ", ") +
                          chartText(m_chart->columns.labels[cell->column]);
    return QString("%1\n%2: %3").arg(where, title, text);
}

ChartTarget GridView::targetAt(QPointF position) const {
    const auto cell = cellAt(position);
    if (!cell || !m_chart->targetOf || std::isnan(m_chart->at(cell->column, cell->row))) return {};
    return m_chart->targetOf(cell->column, cell->row);
}

}  // namespace rankscope::gui

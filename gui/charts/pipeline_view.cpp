// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/pipeline_view.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/charts/series/quantity.h"

namespace rankscope::gui {
namespace {

const char* nameOf(PassKind kind) {
    switch (kind) {
        case PassKind::forward:
            return "forward";
        case PassKind::backward:
            return "backward";
        case PassKind::unknown:
            return "forward and backward";
    }
    return "";
}

constexpr double kHighestRow = 60, kPercentWidth = 64;

}  // namespace

void PipelineView::setChart(PipelineChart chart) {
    m_chart = std::move(chart);
    setTexts(m_chart.nothing, m_chart.note);
}

QColor PipelineView::passColour(PassKind kind) const {
    return kind == PassKind::forward ? seriesColour(0) : kind == PassKind::backward ? seriesColour(2) : seriesColour(4);
}

double PipelineView::xOf(int64_t ns) const {
    return m_rows.left() + m_rows.width() * static_cast<double>(ns - m_chart.range.beginNs) /
                               static_cast<double>(std::max<int64_t>(1, m_chart.range.span()));
}

QRectF PipelineView::stageArea(size_t stage) const {
    const double height = m_rows.height() / static_cast<double>(std::max<size_t>(1, m_chart.stages.size()));
    const double gap = height >= 8 ? std::min(4.0, height / 6) : 0;
    return {m_rows.left(), m_rows.top() + height * static_cast<double>(stage) + gap / 2, m_rows.width(), height - gap};
}

QRectF PipelineView::passArea(size_t stage, const PipelinePass& pass) const {
    const QRectF row = stageArea(stage);
    return {QPointF(xOf(pass.range.beginNs), row.top()),
            QPointF(std::max(xOf(pass.range.endNs), xOf(pass.range.beginNs) + 1), row.bottom())};
}

void PipelineView::paintChart(QPainter& painter, QRectF area) {
    const QFontMetricsF metrics(painter.font());
    const double labels = metrics.horizontalAdvance("stage 000, rank 0000") + 10;
    const double below = 2 * metrics.lineSpacing() + 6;
    m_rows = area.adjusted(labels, metrics.lineSpacing() + 6, -kPercentWidth, -below);
    m_rows.setHeight(std::min(m_rows.height(), kHighestRow * static_cast<double>(m_chart.stages.size())));
    if (m_rows.width() < 40 || m_rows.height() < 10) return;
    paintLegend(painter, QRectF(area.left(), area.top(), area.width(), metrics.lineSpacing()));
    for (size_t stage = 0; stage < m_chart.stages.size(); ++stage) paintStage(painter, stage);
    const double height = m_rows.height() / static_cast<double>(m_chart.stages.size());
    const auto every = static_cast<size_t>(std::ceil(metrics.lineSpacing() / height));
    for (size_t stage = 0; stage < m_chart.stages.size(); stage += every) {
        const QRectF row = stageArea(stage);
        painter.setPen(colour(colours().text));
        painter.drawText(
            QRectF(area.left(), row.center().y() - metrics.lineSpacing(), labels - 8, 2 * metrics.lineSpacing()),
            Qt::AlignRight | Qt::AlignVCenter, QString("stage %1, rank %2").arg(stage).arg(m_chart.stages[stage].rank));
        painter.setPen(colour(colours().dimText));
        painter.drawText(QRectF(m_rows.right() + 8, row.center().y() - metrics.lineSpacing(), kPercentWidth,
                                2 * metrics.lineSpacing()),
                         Qt::AlignLeft | Qt::AlignVCenter,
                         QString("%1 %").arg(100 * m_chart.stages[stage].bubble, 0, 'f', 1));
    }
    paintRuler(painter);
}

void PipelineView::paintStage(QPainter& painter, size_t stage) {
    const QRectF row = stageArea(stage);
    painter.fillRect(row, colour(colours().alternate));
    QColor hatch = colour(isDark() ? 0xffffa94d : 0xffd55e00);
    hatch.setAlphaF(0.45f);
    painter.fillRect(row, QBrush(hatch, Qt::BDiagPattern));
    const QFontMetricsF metrics(painter.font());
    size_t under = 0;
    const PipelinePass* pointed = passAt(pointer(), &under);
    for (const PipelinePass& pass : m_chart.stages[stage].passes) {
        const QRectF box = passArea(stage, pass);
        const QColor fill = passColour(pass.kind);
        painter.fillRect(box, fill);
        if (box.width() >= 5)
            painter.fillRect(QRectF(box.right() - 1, box.top(), 1, box.height()), colour(colours().background));
        const QString text = QString::number(pass.number);
        if (box.height() >= metrics.ascent() && box.width() >= metrics.horizontalAdvance(text) + 4) {
            painter.setPen(Palette::ink(fill.rgb()));
            painter.drawText(box, Qt::AlignCenter, text);
        }
        if (pointed == &pass) {
            painter.setPen(QPen(colour(colours().mark), 2));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(box);
        }
    }
}

void PipelineView::paintRuler(QPainter& painter) {
    const QFontMetricsF metrics(painter.font());
    painter.setPen(colour(colours().text));
    const auto span = static_cast<double>(m_chart.range.span());
    for (const double tick : axisTicks(0, span, false, static_cast<size_t>(std::max(2.0, m_rows.width() / 100)))) {
        const double x = m_rows.left() + m_rows.width() * tick / span;
        painter.drawLine(QPointF(x, m_rows.bottom()), QPointF(x, m_rows.bottom() + 4));
        painter.drawText(QRectF(x - 60, m_rows.bottom() + 4, 120, metrics.lineSpacing()), Qt::AlignHCenter,
                         QString::fromStdString(quantityText(Quantity::nanoseconds, tick)));
    }
    painter.setPen(colour(colours().dimText));
    painter.drawText(
        QRectF(m_rows.left(), m_rows.bottom() + 4 + metrics.lineSpacing(), m_rows.width(), metrics.lineSpacing()),
        Qt::AlignHCenter, QString("time from the first pass of step %1").arg(m_chart.step));
}

void PipelineView::paintLegend(QPainter& painter, QRectF area) {
    const QFontMetricsF metrics(painter.font());
    double x = area.left();
    const auto entry = [&](const QBrush& brush, const QString& name) {
        painter.fillRect(QRectF(x, area.top() + 2, 14, area.height() - 4), brush);
        painter.setPen(colour(colours().text));
        painter.drawText(QRectF(x + 18, area.top(), 400, area.height()), Qt::AlignLeft | Qt::AlignVCenter, name);
        x += 36 + metrics.horizontalAdvance(name);
    };
    for (const PassKind kind : {PassKind::forward, PassKind::backward, PassKind::unknown}) {
        const bool any = std::any_of(m_chart.stages.begin(), m_chart.stages.end(), [&](const PipelineStage& stage) {
            return std::any_of(stage.passes.begin(), stage.passes.end(),
                               [&](const PipelinePass& pass) { return pass.kind == kind; });
        });
        if (any) entry(passColour(kind), nameOf(kind));
    }
    entry(QBrush(isDark() ? QColor(0xff, 0xa9, 0x4d) : QColor(0xd5, 0x5e, 0x00), Qt::BDiagPattern),
          QString("bubble, %1 % of the step on average").arg(100 * m_chart.bubble, 0, 'f', 1));
    if (x > m_rows.right()) return;
    painter.setPen(colour(colours().dimText));
    painter.drawText(QRectF(m_rows.right() + 8, area.top(), kPercentWidth, area.height()),
                     Qt::AlignLeft | Qt::AlignVCenter, "bubble");
}

const PipelinePass* PipelineView::passAt(QPointF position, size_t* stageFound) const {
    if (!m_rows.contains(position)) return nullptr;
    const auto stage = static_cast<size_t>((position.y() - m_rows.top()) / m_rows.height() *
                                           static_cast<double>(m_chart.stages.size()));
    if (stage >= m_chart.stages.size()) return nullptr;
    *stageFound = stage;
    for (const PipelinePass& pass : m_chart.stages[stage].passes)
        if (passArea(stage, pass).contains(position)) return &pass;
    return nullptr;
}

QString PipelineView::tipAt(QPointF position) const {
    size_t stage = 0;
    const PipelinePass* pass = passAt(position, &stage);
    if (!pass) return {};
    return QString("stage %1, rank %2\n%3 %4\n%5")
        .arg(stage)
        .arg(m_chart.stages[stage].rank)
        .arg(nameOf(pass->kind))
        .arg(pass->number)
        .arg(QString::fromStdString(quantityText(Quantity::nanoseconds, static_cast<double>(pass->range.span()))));
}

ChartTarget PipelineView::targetAt(QPointF position) const {
    size_t stage = 0;
    const PipelinePass* pass = passAt(position, &stage);
    return pass ? pass->target : ChartTarget{};
}

}  // namespace rankscope::gui

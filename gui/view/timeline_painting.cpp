// SPDX-License-Identifier: Apache-2.0
// How the timeline looks: TimelineView's painting, apart from its hands.
#include <QPaintEngine>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "gui/session/curve_text.h"
#include "gui/timeline/display_text.h"
#include "gui/view/lane_shapes.h"
#include "gui/view/timeline_view.h"

namespace rankscope::gui {
namespace {

QString shortText(const std::string& text) {
    return QString::fromStdString(displayText(text));
}

QString stateText(const LaneTree& lanes, int32_t rank) {
    const std::string& trouble = lanes.trouble(rank);
    if (!trouble.empty()) return " (" + shortText(trouble) + ")";
    return lanes.tracks(rank) ? QString() : QString(" (loading)");
}

}  // namespace

void TimelineView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), colour(m_palette->background));
    QFont font = painter.font();
    font.setPixelSize(12);
    painter.setFont(font);

    const LaneTree& lanes = m_model.lanes();
    const int top = lanesTop();
    paintLanes(painter, m_canvas, lanes.rows(), top, m_scroll->value(), std::max(1, height() - top));
    paintRowLabels(painter, scrolledArea());
    if (lanes.rows().empty() && lanes.pinnedRows().empty() && !lanes.choices().filter.empty()) {
        painter.setPen(colour(m_palette->text));
        painter.drawText(
            QRect(0, top, width(), height() - top), Qt::AlignCenter,
            QString("No lane matches '%1': empty the filter to see all ranks.").arg(shortText(lanes.choices().filter)));
    }
    if (!lanes.pinnedRows().empty()) {
        const int pinned = top - kRulerHeight - kBelowPinned;
        paintLanes(painter, m_pinnedCanvas, lanes.pinnedRows(), kRulerHeight, 0, pinned);
        painter.fillRect(0, kRulerHeight, m_labelWidth, pinned, colour(m_palette->background));
        paintRowLabels(painter, pinnedArea());
        painter.fillRect(0, top - kBelowPinned, width(), kBelowPinned, colour(m_palette->dimText));
    }
    paintRuler(painter);
    paintOverlay(painter);
}

// Pixels on a screen, shapes in a file of shapes.
void TimelineView::paintLanes(QPainter& painter, LaneCanvas& canvas, const std::vector<Row>& rows, int top,
                              int scrollTop, int height) {
    if (painter.paintEngine()->type() == QPaintEngine::SVG)
        drawLaneShapes(painter, m_model, rows, QRect(m_labelWidth, top, lanesWidth(), height), scrollTop, *m_palette);
    else
        painter.drawImage(QPointF(m_labelWidth, top), canvas.paint(m_model, rows, scrollTop, {lanesWidth(), height},
                                                                   devicePixelRatioF(), *m_palette));
}

void TimelineView::paintRuler(QPainter& painter) {
    painter.fillRect(0, 0, width(), kRulerHeight, colour(m_palette->header));
    const Ruler ruler = m_model.axis().ruler(90);
    painter.setPen(colour(m_palette->dimText));
    painter.drawText(QRectF(6, 0, m_labelWidth - 12, kRulerHeight), Qt::AlignVCenter | Qt::AlignRight,
                     QString::fromStdString(ruler.baseLabel));
    painter.setClipRect(m_labelWidth, 0, lanesWidth(), height());
    for (const Tick& tick : ruler.ticks) {
        const double x = m_labelWidth + tick.x;
        painter.setPen(colour(m_palette->text));
        painter.drawText(QPointF(x + 4, kRulerHeight - 10), QString::fromStdString(tick.label));
        painter.setPen(colour(m_palette->dimText));
        painter.drawLine(QPointF(x, kRulerHeight - 8), QPointF(x, kRulerHeight));
        QColor line = colour(m_palette->dimText);
        line.setAlpha(50);
        painter.setPen(line);
        painter.drawLine(QPointF(x, kRulerHeight), QPointF(x, height()));
    }
    if (const auto& anchor = m_model.anchor()) {
        const double x = m_labelWidth + m_model.axis().xOf(anchor->ns);
        painter.setPen(QPen(colour(m_palette->mark), 1.5, Qt::DashLine));
        painter.drawLine(QPointF(x, kRulerHeight), QPointF(x, height()));
        const QRectF tag(x + 1, kRulerHeight + 2, painter.fontMetrics().horizontalAdvance(anchor->label) + 10, 13);
        painter.fillRect(tag, colour(m_palette->mark));
        painter.setPen(Palette::ink(m_palette->mark));
        painter.drawText(tag, Qt::AlignCenter, anchor->label);
    }
    painter.setClipping(false);
}

// A lane that has lost its rank's line to the edge above says whose it is.
void TimelineView::paintRowLabels(QPainter& painter, const RowArea& area) {
    painter.setClipRect(0, area.top, width(), area.bottom - area.top);
    bool isFirst = true;
    for (const Row& row : *area.rows) {
        const int y = area.origin + row.top;
        if (y + row.height / 2 < area.top) continue;
        if (y > area.bottom) break;
        const bool isOrphan = isFirst && row.kind == RowKind::lane;
        isFirst = false;
        paintRowLabel(painter, row, y, isOrphan ? QString("rank %1 \u00b7 ").arg(row.rank) : QString());
    }
    painter.fillRect(m_labelWidth - 1, area.top, 1, area.bottom - area.top, colour(m_palette->grid));
    painter.setClipping(false);
}

void TimelineView::paintRowLabel(QPainter& painter, const Row& row, int y, const QString& owner) {
    const bool host = row.kind == RowKind::host, summary = row.kind == RowKind::summary;
    painter.fillRect(0, y, m_labelWidth, row.height, colour(host ? m_palette->header : m_palette->background));
    const int indent = host ? 4 : summary ? 14 : owner.isEmpty() ? 34 : 14;
    QString text = owner + shortText(row.label);
    if ((host || summary) && !row.excerpt)
        text = (row.expanded ? QStringLiteral("\u25be ") : QStringLiteral("\u25b8 ")) + text;
    if (summary) text += stateText(m_model.lanes(), row.rank);
    painter.setPen(colour(host || summary || !owner.isEmpty() ? m_palette->text : m_palette->dimText));
    painter.drawText(QRectF(indent, y, m_labelWidth - indent - 4, row.height),
                     Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine,
                     painter.fontMetrics().elidedText(text, host || summary ? Qt::ElideRight : Qt::ElideMiddle,
                                                      m_labelWidth - indent - 6));
    painter.fillRect(0, y + row.height - 1, width() - m_scroll->width(), 1, colour(m_palette->grid));
    if (!summary) return;
    const Evidence& evidence = m_model.evidence();
    const bool toFix = evidence.toFix.contains(row.rank);
    if (!toFix && !evidence.waiting.contains(row.rank)) return;
    if (toFix) painter.fillRect(0, y + 1, 5, row.height - 2, colour(m_palette->mark));
    painter.setPen(colour(toFix ? m_palette->mark : m_palette->dimText));
    painter.drawText(QRectF(indent, y, m_labelWidth - indent - 8, row.height), Qt::AlignVCenter | Qt::AlignRight,
                     toFix ? "the rank to fix \u25b8" : "waits");
}

void TimelineView::paintOverlay(QPainter& painter) {
    painter.setClipRect(m_labelWidth, 0, lanesWidth(), height());
    paintTimeSelection(painter);
    for (const RowArea& area : {scrolledArea(), pinnedArea()}) {
        painter.setClipRect(m_labelWidth, area.top, lanesWidth(), area.bottom - area.top);
        paintScales(painter, area);
        paintMarks(painter, area);
    }
    painter.setClipRect(m_labelWidth, kRulerHeight, lanesWidth(), height() - kRulerHeight);
    paintFlows(painter);
    for (const RowArea& area : {scrolledArea(), pinnedArea()}) {
        painter.setClipRect(m_labelWidth, area.top, lanesWidth(), area.bottom - area.top);
        paintOutline(painter, m_model.selection(), area, QPen(colour(m_palette->selection), 2));
        paintNotes(painter, area);
    }
    painter.setClipRect(m_labelWidth, 0, lanesWidth(), height());
    if (m_pointer.x() >= m_labelWidth && m_drag == Drag::none) {
        QColor line = colour(m_palette->dimText);
        line.setAlpha(120);
        painter.setPen(line);
        painter.drawLine(QPointF(m_pointer.x(), kRulerHeight), QPointF(m_pointer.x(), height()));
    }
    painter.setClipping(false);
}

void TimelineView::paintTimeSelection(QPainter& painter) {
    const auto range = m_model.timeSelection();
    if (!range) return;
    const double left = m_labelWidth + m_model.axis().xOf(range->beginNs),
                 right = m_labelWidth + m_model.axis().xOf(range->endNs);
    QColor shade = colour(m_palette->selection);
    shade.setAlpha(28);
    painter.fillRect(QRectF(left, 0, right - left, height()), shade);
    painter.setPen(QPen(colour(m_palette->selection), 1));
    painter.drawLine(QPointF(left, 0), QPointF(left, height()));
    painter.drawLine(QPointF(right, 0), QPointF(right, height()));
    const QString length = QString::fromStdString(durationText(range->span()));
    const double wide = painter.fontMetrics().horizontalAdvance(length) + 10.0,
                 from = std::max<double>(left, m_labelWidth), to = std::min<double>(right, m_labelWidth + lanesWidth());
    const QRectF tag(std::clamp((from + to - wide) / 2, m_labelWidth + 1.0,
                                std::max(m_labelWidth + 1.0, m_labelWidth + lanesWidth() - wide)),
                     0, wide, kRulerHeight - 9);
    painter.fillRect(tag, colour(m_palette->header));  // over the ruler's own labels
    painter.drawText(tag, Qt::AlignCenter, length);
}

// What the height of a counter's lane stands for.
void TimelineView::paintScales(QPainter& painter, const RowArea& area) {
    QFont font = painter.font();
    const QFont before = font;
    font.setPixelSize(11);
    painter.setFont(font);
    for (const Row& row : *area.rows) {
        const int y = area.origin + row.top;
        if (y + row.height < area.top) continue;
        if (y > area.bottom) break;
        const Curve* curve = curveOf(row);
        if (!curve) continue;
        QString text = "peak " + shortText(curveText(curve->unit(), curve->peak()));
        if (curve->limit()) text += " of " + shortText(curveText(curve->unit(), *curve->limit()));
        const QRectF tag(m_labelWidth + 2, y + 2, painter.fontMetrics().horizontalAdvance(text) + 6,
                         painter.fontMetrics().height());
        QColor back = colour(m_palette->background);
        back.setAlpha(190);
        painter.fillRect(tag, back);
        painter.setPen(colour(m_palette->dimText));
        painter.drawText(tag, Qt::AlignCenter, text);
    }
    painter.setFont(before);
}

void TimelineView::paintMarks(QPainter& painter, const RowArea& area) {
    for (const EventRef& mark : m_model.marks()) paintOutline(painter, mark, area, QPen(colour(m_palette->mark), 2));
    for (const MarkedTime& marked : m_model.markedTimes()) {
        painter.setPen(QPen(colour(m_palette->mark), 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(areaOf(marked, area));
    }
    paintHits(painter, area);
    for (const EventRef& related : m_model.related())
        paintOutline(painter, related, area, QPen(colour(m_palette->selection), 1, Qt::DashLine));
}

void TimelineView::paintOutline(QPainter& painter, EventRef event, const RowArea& area, const QPen& pen) {
    const QRectF place = areaOf(event, area);
    if (place.isNull() || place.bottom() < area.top || place.top() > area.bottom) return;
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(place.adjusted(-1, 0.5, 1, -1.5));
}

QRectF TimelineView::areaOf(const MarkedTime& marked, const RowArea& area) const {
    const Row* row = LaneTree::summaryRow(*area.rows, marked.rank);
    if (!row) return {};
    const double left = m_labelWidth + m_model.axis().xOf(marked.time.beginNs),
                 right = m_labelWidth + m_model.axis().xOf(marked.time.endNs);
    return QRectF(left, area.origin + row->top + 1, std::max(2.0, right - left), row->height - 2);
}

// A bar below every event that the search has found; on its rank's line where its lane is not shown.
void TimelineView::paintHits(QPainter& painter, const RowArea& area) {
    if (m_model.hits().empty()) return;
    constexpr uint64_t kSummary = UINT32_MAX;
    const auto key = [](int32_t rank, uint64_t lane) {
        return static_cast<uint64_t>(static_cast<uint32_t>(rank)) << 32 | lane;
    };
    std::unordered_map<uint64_t, const Row*> rows;
    for (const Row& row : *area.rows)
        if (row.kind != RowKind::host) rows[key(row.rank, row.kind == RowKind::summary ? kSummary : row.lane)] = &row;
    const TimeAxis& axis = m_model.axis();
    const TimeRange visible = axis.visible();
    std::unordered_map<const Row*, double> drawnTo;  // many hits share a pixel
    for (const EventRef& hit : m_model.hits()) {
        if (!m_model.isValid(hit)) continue;
        const TrackEvent event = m_model.event(hit);
        if (event.startNs > visible.endNs || event.startNs + event.durNs < visible.beginNs) continue;
        auto found = rows.find(key(hit.rank, hit.lane));
        if (found == rows.end()) found = rows.find(key(hit.rank, kSummary));
        if (found == rows.end()) continue;
        const Row& row = *found->second;
        const double left = std::max(0.0, axis.xOf(event.startNs)),
                     right = std::max(left + 2, std::min(axis.width(), axis.xOf(event.startNs + event.durNs)));
        const auto [place, isFirst] = drawnTo.try_emplace(&row, -1.0);
        if (!isFirst && right <= place->second) continue;
        place->second = std::max(place->second, right);
        painter.fillRect(QRectF(m_labelWidth + left, area.origin + row.top + row.height - 4, right - left, 3),
                         colour(m_palette->selection));
    }
}

// What the marks show, beside them, the strongest first and none over another.
void TimelineView::paintNotes(QPainter& painter, const RowArea& area) {
    const Evidence& evidence = m_model.evidence();
    std::vector<QRectF> placed;
    QFont font = painter.font();
    font.setPixelSize(11);
    painter.setFont(font);
    const QFontMetricsF metrics(font);
    for (size_t i = 0; i < evidence.notes.size() && i < evidence.events.size() + evidence.times.size(); ++i) {
        const RowArea pinned = pinnedArea();
        const bool isTwice =
            area.rows != pinned.rows && i < evidence.events.size() && !areaOf(evidence.events[i], pinned).isNull();
        if (isTwice) continue;  // it is told where it stays
        const QRectF mark = i < evidence.events.size() ? areaOf(evidence.events[i], area)
                                                       : areaOf(evidence.times[i - evidence.events.size()], area);
        const bool inView = !mark.isNull() && mark.right() > m_labelWidth &&
                            mark.left() < m_labelWidth + lanesWidth() && mark.top() >= area.top &&
                            mark.bottom() <= area.bottom;
        if (!inView || evidence.notes[i].isEmpty()) continue;
        const double width = metrics.horizontalAdvance(evidence.notes[i]) + 10, tall = metrics.height() + 2;
        const double x = std::clamp(mark.left(), m_labelWidth + 2.0,
                                    std::max(m_labelWidth + 2.0, m_labelWidth + lanesWidth() - width - 2));
        const double y = mark.bottom() + 2 + tall <= area.bottom ? mark.bottom() + 2 : mark.top() - tall - 2;
        const QRectF tag(x, y, width, tall);
        if (std::any_of(placed.begin(), placed.end(),
                        [&](const QRectF& other) { return other.adjusted(-6, -1, 6, 1).intersects(tag); }))
            continue;
        placed.push_back(tag);
        painter.fillRect(tag, colour(m_palette->mark));
        painter.setPen(Palette::ink(m_palette->mark));
        painter.drawText(tag, Qt::AlignCenter, evidence.notes[i]);
    }
}

void TimelineView::paintFlows(QPainter& painter) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(colour(m_palette->mark), 1.5));
    painter.setBrush(Qt::NoBrush);
    for (const FlowLine& flow : m_model.flows()) {
        const QRectF from = areaInSight(flow.from), to = areaInSight(flow.to);
        if (from.isNull() || to.isNull()) continue;  // a line out of the picture leads nowhere
        const QPointF start(from.left(), from.center().y()), end(to.left(), to.center().y());
        QPainterPath path(start);
        const double bend = std::clamp(std::abs(end.x() - start.x()) / 2, 12.0, 120.0);
        path.cubicTo(start + QPointF(bend, 0), end - QPointF(bend, 0), end);
        painter.drawPath(path);
        painter.setBrush(painter.pen().color());
        painter.drawEllipse(end, 2.5, 2.5);
        painter.setBrush(Qt::NoBrush);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
// How the timeline looks: TimelineView's painting, apart from its hands.
#include <QPaintEngine>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "gui/session/curve_text.h"
#include "gui/timeline/display_text.h"
#include "gui/view/lane_shapes.h"
#include "gui/view/timeline_view.h"

namespace rankscope::gui {
namespace {

constexpr int kLeastFramedHeight = 8;  // of a member of the selected collective

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
    QElapsedTimer took;
    took.start();
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
        paintRowLabels(painter, pinnedArea());
        painter.fillRect(0, top - kBelowPinned, width(), kBelowPinned, colour(m_palette->dimText));
    }
    paintRuler(painter);
    paintOverlay(painter);
    constexpr int kLongestRestMs = 250;
    m_soon.setInterval(std::min<int>(kLongestRestMs, 2 * static_cast<int>(took.elapsed())));
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
    painter.drawText(QRectF(6, kStepsHeight, m_labelWidth - 12, kRulerHeight - kStepsHeight),
                     Qt::AlignVCenter | Qt::AlignRight, QString::fromStdString(ruler.baseLabel));
    painter.setClipRect(m_labelWidth, 0, lanesWidth(), height());
    paintSteps(painter);
    for (const Tick& tick : ruler.ticks) {
        const double x = m_labelWidth + tick.x;
        const QString label = QString::fromStdString(tick.label);
        painter.setPen(colour(m_palette->text));
        const bool fits = x + 4 + painter.fontMetrics().horizontalAdvance(label) <= m_labelWidth + lanesWidth();
        if (fits) painter.drawText(QPointF(x + 4, kRulerHeight - 10), label);
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

// Where steps begin, with their numbers where there is room: those of the rank that a finding is about, else of the
// first that has steps.
void TimelineView::paintSteps(QPainter& painter) {
    constexpr double kLeastApart = 8;  // pixels; closer together they are a grey band
    if (!m_model.run()) return;
    const std::vector<StepInfo>& all = m_model.run()->steps;
    const std::vector<RankExcerpt>& excerpts = m_model.lanes().excerpts();
    if (all.empty()) return;
    const auto byRank = [](const StepInfo& step, int32_t rank) { return step.rank < rank; };
    const int32_t wanted = excerpts.empty() ? all.front().rank : excerpts.front().rank;
    auto step = std::lower_bound(all.begin(), all.end(), wanted, byRank);
    if (step == all.end() || step->rank != wanted) step = all.begin();
    const auto last = std::lower_bound(step, all.end(), step->rank + 1, byRank);
    const TimeAxis& axis = m_model.axis();
    step = std::partition_point(step, last, [&](const StepInfo& s) { return s.range.endNs <= axis.visible().beginNs; });
    double taken = m_labelWidth - kLeastApart;  // what is left of it is full
    for (; step != last && step->range.beginNs < axis.visible().endNs; ++step) {
        const double x = m_labelWidth + axis.xOf(step->range.beginNs), from = std::max<double>(x, m_labelWidth);
        const QString label = QString("step %1").arg(step->step);
        const double wide = painter.fontMetrics().horizontalAdvance(label) + 10,
                     end = m_labelWidth + std::min(axis.xOf(step->range.endNs), axis.width());
        if (from < taken) continue;
        painter.setPen(colour(m_palette->dimText));
        if (x >= m_labelWidth) painter.drawLine(QPointF(x, 2), QPointF(x, kStepsHeight + 1));
        taken = from + kLeastApart;
        // Of a step that begins left of the picture only where the number belongs to what is seen.
        if ((x < m_labelWidth && end - from < wide) || from + wide > m_labelWidth + lanesWidth()) continue;
        painter.drawText(QRectF(from + 4, 1, wide, kStepsHeight), Qt::AlignVCenter | Qt::AlignLeft, label);
        taken = from + wide;
    }
}

// A lane that has lost its rank's line to the edge above says whose it is.
void TimelineView::paintRowLabels(QPainter& painter, const RowArea& area) {
    painter.setClipRect(0, area.top, width(), area.bottom - area.top);
    painter.fillRect(0, area.top, m_labelWidth, area.bottom - area.top, colour(m_palette->background));
    bool isFirst = true;
    for (const LabelPlace& label : placeLabels(*area.rows, {area.origin, area.top, area.bottom}, kLeastLabelHeight,
                                               [this](const Row& row) { return isToFix(row); })) {
        const bool isOrphan = std::exchange(isFirst, false) && label.row->kind == RowKind::lane;
        paintRowLabel(painter, label, isOrphan ? QString("rank %1 \u00b7 ").arg(label.row->rank) : QString());
    }
    for (const Row& row : *area.rows)  // those that have no room for their name as well
        if (area.origin + row.top <= area.bottom && isToFix(row))
            painter.fillRect(0, area.origin + row.top, 5, std::max(1, row.height - 1), colour(m_palette->mark));
    painter.fillRect(m_labelWidth - 1, area.top, 1, area.bottom - area.top, colour(m_palette->grid));
    painter.setClipping(false);
}

bool TimelineView::isToFix(const Row& row) const {
    return row.kind == RowKind::summary && m_model.evidence().toFix.contains(row.rank);
}

// "dp 2 tp 1 pp 0", where that is known.
QString TimelineView::placesOf(int32_t rank) const {
    QStringList places;
    for (const OutlineRank& known : m_model.lanes().outline().ranks)
        if (known.rank == rank)
            for (const auto& [direction, place] : known.places)
                places << QString("%1 %2").arg(shortText(direction)).arg(place);
    return places.join("  ");
}

void TimelineView::paintRowLabel(QPainter& painter, const LabelPlace& label, const QString& owner) {
    const Row& row = *label.row;
    const bool group = row.kind == RowKind::group, summary = row.kind == RowKind::summary;
    const int height = std::max(row.height, kLeastLabelHeight), top = label.top;
    painter.fillRect(0, top, m_labelWidth, height, colour(group ? m_palette->header : m_palette->background));
    const int indent = group ? 4 : summary ? 14 : owner.isEmpty() ? 34 : 14;
    QString text = owner + shortText(row.label);
    if ((group || summary) && !row.excerpt)
        text = (row.expanded ? QStringLiteral("\u25be ") : QStringLiteral("\u25b8 ")) + text;
    if (summary) text += stateText(m_model.lanes(), row.rank);
    const int room = m_labelWidth - indent - 6;
    painter.setPen(colour(group || summary || !owner.isEmpty() ? m_palette->text : m_palette->dimText));
    painter.drawText(QRectF(indent, top, room + 2, height), Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine,
                     painter.fontMetrics().elidedText(text, group || summary ? Qt::ElideRight : Qt::ElideMiddle, room));
    if (row.height >= kLeastLabelHeight)
        painter.fillRect(0, label.y + row.height - 1, width() - m_scroll->width(), 1, colour(m_palette->grid));
    if (!summary) return;
    const Evidence& evidence = m_model.evidence();
    const bool toFix = isToFix(row);
    QString beside = toFix                                 ? QString("the rank to fix \u25b8")
                     : evidence.waiting.contains(row.rank) ? QString("waits")
                                                           : placesOf(row.rank);
    if (painter.fontMetrics().horizontalAdvance(text + "  " + beside) > room) beside = toFix ? "to fix \u25b8" : "";
    if (toFix) painter.fillRect(0, top + 1, 5, height - 2, colour(m_palette->mark));
    painter.setPen(colour(toFix ? m_palette->mark : m_palette->dimText));
    painter.drawText(QRectF(indent, top, room - 2, height), Qt::AlignVCenter | Qt::AlignRight, beside);
}

void TimelineView::paintOverlay(QPainter& painter) {
    painter.setClipRect(m_labelWidth, 0, lanesWidth(), height());
    paintTimeSelection(painter);
    for (const RowArea& area : {scrolledArea(), pinnedArea()}) {
        painter.setClipRect(m_labelWidth, area.top, lanesWidth(), area.bottom - area.top);
        paintScales(painter, area);
        paintPath(painter, area);
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
                     kStepsHeight, wide, kRulerHeight - kStepsHeight - 9);
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

// Along the lower edge of the rank's line that the critical path is on, and from line to line where it goes on on
// another rank.
void TimelineView::paintPath(QPainter& painter, const RowArea& area) {
    constexpr int kThick = 3, kLeastHeight = 3 * kThick;  // it leaves most of a line to its colours
    constexpr double kLeastApart = 3;                     // pixels; more steps from line to line are a grey band
    if (!m_isPathShown || !m_model.run() || m_model.run()->path.empty()) return;
    std::unordered_map<int32_t, int> bottoms;  // of the lines that have room for it
    for (const Row& row : *area.rows) {
        const int top = area.origin + row.top;
        if (row.kind == RowKind::summary && row.height >= kLeastHeight && top < area.bottom &&
            top + row.height > area.top)
            bottoms[row.rank] = top + row.height;
    }
    if (bottoms.empty()) return;
    const TimeAxis& axis = m_model.axis();
    const TimeRange visible = axis.visible();
    const std::vector<PathStretch>& path = m_model.run()->path;
    auto stretch = std::partition_point(path.begin(), path.end(),
                                        [&](const PathStretch& each) { return each.time.beginNs < visible.beginNs; });
    if (stretch != path.begin()) --stretch;
    const QColor ink = colour(m_palette->text);
    std::unordered_map<int32_t, double> drawnTo;  // many stretches share a pixel
    auto before = bottoms.end();
    double lastStep = -kLeastApart;
    for (; stretch != path.end() && stretch->time.beginNs < visible.endNs; ++stretch) {
        const auto bottom = bottoms.find(stretch->rank);
        const auto from = std::exchange(before, bottom);
        if (bottom == bottoms.end() || stretch->time.endNs <= visible.beginNs) continue;
        const double left = std::max(0.0, axis.xOf(stretch->time.beginNs)),
                     right = std::max(left + 1, std::min(axis.width(), axis.xOf(stretch->time.endNs)));
        if (from != bottoms.end() && from != bottom && left >= lastStep + kLeastApart) {
            const int upper = std::min(from->second, bottom->second), lower = std::max(from->second, bottom->second);
            painter.fillRect(QRectF(m_labelWidth + left, upper - kThick, 1, lower - upper), ink);
            lastStep = left;
        }
        double& covered = drawnTo.try_emplace(stretch->rank, -1.0).first->second;
        if (right <= covered) continue;
        covered = right;
        painter.fillRect(QRectF(m_labelWidth + left, bottom->second - 1 - kThick, right - left, kThick), ink);
    }
}

void TimelineView::paintMarks(QPainter& painter, const RowArea& area) {
    for (const EventRef& mark : m_model.marks()) paintOutline(painter, mark, area, QPen(colour(m_palette->mark), 2));
    for (const MarkedTime& marked : m_model.markedTimes()) {
        painter.setPen(QPen(colour(m_palette->mark), 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(areaOf(marked, area));
    }
    paintHits(painter, area);
    for (const EventRef& related : m_model.related()) {
        // Frames around hundreds of low lines would hide them all: their ends are enough.
        const QRectF place = areaOf(related, area);
        if (!place.isNull() && place.height() < kLeastFramedHeight)
            for (const double x : {place.left(), place.right()})
                painter.fillRect(QRectF(x, place.top(), 1, place.height()), colour(m_palette->selection));
        else
            paintOutline(painter, related, area, QPen(colour(m_palette->selection), 1, Qt::DashLine));
    }
}

void TimelineView::paintOutline(QPainter& painter, EventRef event, const RowArea& area, const QPen& pen) {
    const QRectF place = areaOf(event, area);
    if (place.isNull() || place.bottom() < area.top || place.top() > area.bottom) return;
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    // Around a line of a pixel or two the frame stands outside.
    painter.drawRect(place.height() < 4 ? place.adjusted(-1, -2, 1, 1) : place.adjusted(-1, 0.5, 1, -1.5));
}

QRectF TimelineView::areaOf(const MarkedTime& marked, const RowArea& area) const {
    const Row* row = LaneTree::summaryRow(*area.rows, marked.rank);
    if (!row) return {};
    const double left = m_labelWidth + m_model.axis().xOf(marked.time.beginNs),
                 right = m_labelWidth + m_model.axis().xOf(marked.time.endNs);
    return QRectF(left, area.origin + row->top + 1, std::max(2.0, right - left), std::max(1, row->height - 2));
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
        if (row.kind != RowKind::group) rows[key(row.rank, row.kind == RowKind::summary ? kSummary : row.lane)] = &row;
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

// What the marks show, beside them, the strongest first and none over another. Beside the excerpts of a tour alone,
// where there are any: on ranks' lines a note would cover the neighbour's (tipAt tells it there).
void TimelineView::paintNotes(QPainter& painter, const RowArea& area) {
    const Evidence& evidence = m_model.evidence();
    if (!m_model.lanes().excerpts().empty() && area.rows != &m_model.lanes().pinnedRows()) return;
    std::vector<QRectF> placed;
    QFont font = painter.font();
    font.setPixelSize(11);
    painter.setFont(font);
    const QFontMetricsF metrics(font);
    for (size_t i = 0; i < evidence.notes.size() && i < evidence.events.size() + evidence.times.size(); ++i) {
        const QRectF mark = areaOfMark(i, area);
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

// Of the events that a note may stand beside, then of the times: as in Evidence::notes.
QRectF TimelineView::areaOfMark(size_t note, const RowArea& area) const {
    const Evidence& evidence = m_model.evidence();
    if (note < evidence.events.size()) return areaOf(evidence.events[note], area);
    note -= evidence.events.size();
    return note < evidence.times.size() ? areaOf(evidence.times[note], area) : QRectF();
}

bool TimelineView::isPinnedOnLane(EventRef event) const {
    return LaneTree::rowOf(m_model.lanes().pinnedRows(), event.rank, event.lane) != nullptr;
}

// On a tour only between lanes of its excerpts: lines to the ranks below would cross all that is to be compared.
void TimelineView::paintFlows(QPainter& painter) {
    const bool onTour = !m_model.lanes().excerpts().empty();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(colour(m_palette->mark), 1.5));
    painter.setBrush(Qt::NoBrush);
    for (const FlowLine& flow : m_model.flows()) {
        if (onTour && !(isPinnedOnLane(flow.from) && isPinnedOnLane(flow.to))) continue;
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

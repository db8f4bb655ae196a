// SPDX-License-Identifier: Apache-2.0
#include "gui/view/timeline_view.h"

#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QEnterEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMenu>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "gui/session/curve_text.h"
#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

QString text(const std::string& name) {
    return QString::fromStdString(displayText(name)).toHtmlEscaped();
}

constexpr int kNarrowestLabels = 80;
constexpr double kKeyZoom = 1.5;
constexpr double kKeyPan = 0.15;    // of the picture's width
constexpr double kClickSlop = 4;    // pixels a hand may shake
constexpr qint64 kGestureMs = 700;  // zooming again within it belongs to the same gesture, one step of `back`

}  // namespace

TimelineView::TimelineView(TimelineModel& model, QWidget* parent)
    : QWidget(parent), m_model(model), m_scroll(new QScrollBar(Qt::Vertical, this)), m_palette(&Palette::light()) {
    setObjectName("timeline");
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setMinimumSize(480, 240);
    m_scroll->setSingleStep(24);
    connect(m_scroll, &QScrollBar::valueChanged, this, qOverload<>(&QWidget::update));
    m_soon.setSingleShot(true);
    connect(&m_soon, &QTimer::timeout, this, qOverload<>(&QWidget::update));
    connect(&m_model, &TimelineModel::lanesChanged, this, [this] {
        updateScroll();
        if (!m_soon.isActive()) m_soon.start();
    });
    for (const auto changed : {&TimelineModel::viewChanged, &TimelineModel::selectionChanged,
                               &TimelineModel::timeSelectionChanged, &TimelineModel::marksChanged})
        connect(&m_model, changed, this, qOverload<>(&QWidget::update));
}

void TimelineView::showPath(bool isShown) {
    m_isPathShown = isShown;
    update();
}

void TimelineView::setDark(bool dark) {
    m_palette = &Palette::of(dark);
    emit paletteChanged();
    update();
}

void TimelineView::setLabelWidth(int width) {
    width = std::clamp(width, kNarrowestLabels, std::max(kNarrowestLabels, this->width() / 2));
    if (width == m_labelWidth) return;
    m_labelWidth = width;
    m_model.setWidth(lanesWidth());
    emit labelWidthChanged(width);
    update();
}

int TimelineView::lanesTop() const {
    const int pinned = m_model.lanes().pinnedHeight();
    return kRulerHeight + (pinned > 0 ? std::min(pinned, height() / 2) + kBelowPinned : 0);
}

int TimelineView::lanesWidth() const {
    return std::max(1, width() - m_labelWidth - m_scroll->sizeHint().width());
}

void TimelineView::updateScroll() {
    const int page = std::max(1, height() - lanesTop());
    m_scroll->setGeometry(width() - m_scroll->sizeHint().width(), lanesTop(), m_scroll->sizeHint().width(), page);
    m_scroll->setPageStep(page);
    m_scroll->setRange(0, std::max(0, m_model.lanes().height() - page));
}

void TimelineView::resizeEvent(QResizeEvent*) {
    updateScroll();
    m_model.setWidth(lanesWidth());
}

const Row* TimelineView::rowAt(QPointF position, int* top) const {
    const auto y = static_cast<int>(position.y());
    if (y < kRulerHeight) return nullptr;
    const RowArea area = y < lanesTop() ? pinnedArea() : scrolledArea();
    const Row* row = y < area.bottom ? LaneTree::rowAt(*area.rows, y - area.origin) : nullptr;
    if (row && top) *top = area.origin + row->top;
    return row;
}

EventRef TimelineView::eventAt(QPointF position) const {
    const Row* row = rowAt(position);
    const RankTracks* tracks = row ? m_model.lanes().tracks(row->rank) : nullptr;
    if (!tracks || laneX(position) < 0) return {};
    // What a rank's line leaves blank is a gap of its lane of idleness.
    const size_t laneIndex = row->kind == RowKind::lane ? row->lane : tracks->idleLane();
    if (laneIndex >= tracks->lanes.size()) return {};
    // What is narrower than the hand is precise may be hit beside it.
    const TimeAxis& axis = m_model.axis();
    const int64_t time = axis.timeAt(laneX(position)), from = axis.timeAt(laneX(position) - 2),
                  to = axis.timeAt(laneX(position) + 2);
    const Lane& lane = tracks->lanes[laneIndex];
    EventRef best;
    int64_t bestDistance = INT64_MAX, bestDuration = -1;
    for (uint32_t part = 0; part < lane.parts.size(); ++part) {
        const Track& track = lane.parts[part].track;
        for (size_t i = track.firstEndingAfter(from), seen = 0; i < track.size() && track.startNs(i) <= to && seen < 64;
             ++i, ++seen) {
            const int64_t distance = std::max<int64_t>({0, track.startNs(i) - time, time - track.endNs(i)});
            if (distance > bestDistance || (distance == bestDistance && track.durNs(i) <= bestDuration)) continue;
            best = {row->rank, static_cast<uint32_t>(laneIndex), part, static_cast<uint32_t>(i)};
            bestDistance = distance;
            bestDuration = track.durNs(i);
        }
    }
    return best;
}

TimelineView::RowArea TimelineView::pinnedArea() const {
    const int bottom = m_model.lanes().pinnedRows().empty() ? kRulerHeight : lanesTop() - kBelowPinned;
    return {&m_model.lanes().pinnedRows(), kRulerHeight, kRulerHeight, bottom};
}

TimelineView::RowArea TimelineView::scrolledArea() const {
    return {&m_model.lanes().rows(), lanesTop() - m_scroll->value(), lanesTop(), height()};
}

// Where its lane is not shown, its rank's line stands for it.
QRectF TimelineView::areaOf(EventRef event, const RowArea& area) const {
    if (!m_model.isValid(event)) return {};
    const Row* row = LaneTree::rowOf(*area.rows, event.rank, event.lane);
    if (!row) row = LaneTree::summaryRow(*area.rows, event.rank);
    if (!row) return {};
    const TrackEvent shown = m_model.event(event);
    const TimeAxis& axis = m_model.axis();
    const double left = std::clamp(axis.xOf(shown.startNs), -2.0, axis.width() + 2),
                 right = std::clamp(axis.xOf(shown.startNs + shown.durNs), -2.0, axis.width() + 2);
    return {m_labelWidth + left, static_cast<double>(area.origin + row->top), std::max(2.0, right - left),
            static_cast<double>(row->height)};
}

QRectF TimelineView::areaOf(EventRef event) const {
    const QRectF pinned = areaOf(event, pinnedArea());
    return pinned.isNull() ? areaOf(event, scrolledArea()) : pinned;
}

// Null where it is scrolled out of sight.
QRectF TimelineView::areaInSight(EventRef event) const {
    for (const RowArea& area : {pinnedArea(), scrolledArea()}) {
        const QRectF place = areaOf(event, area);
        if (!place.isNull() && place.center().y() >= area.top && place.center().y() < area.bottom) return place;
    }
    return {};
}

void TimelineView::reveal(const Row* row) {
    if (!row) return;
    const int page = m_scroll->pageStep();
    if (row->top < m_scroll->value() || row->top + row->height > m_scroll->value() + page)
        m_scroll->setValue(row->top - page / 2);
}

void TimelineView::scrollToRank(int32_t rank) {
    reveal(LaneTree::summaryRow(m_model.lanes().rows(), rank));
}

void TimelineView::scrollToSelection() {
    const EventRef selected = m_model.selection();
    if (!selected.valid() || LaneTree::rowOf(m_model.lanes().pinnedRows(), selected.rank, selected.lane)) return;
    reveal(LaneTree::rowOf(m_model.lanes().rows(), selected.rank, selected.lane));
}

void TimelineView::zoom(double x, double factor) {
    if (!m_sinceZoom.isValid() || m_sinceZoom.elapsed() > kGestureMs) m_model.remember();
    m_sinceZoom.restart();
    m_model.zoomAt(x, factor);
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
    const double x = m_pointer.x() >= m_labelWidth ? laneX(m_pointer) : lanesWidth() / 2.0;
    switch (event->key()) {
        case Qt::Key_W:
        case Qt::Key_Plus:
        case Qt::Key_Equal:
            zoom(x, 1 / kKeyZoom);
            return;
        case Qt::Key_S:
        case Qt::Key_Minus:
            zoom(x, kKeyZoom);
            return;
        case Qt::Key_A:
        case Qt::Key_Left:
            m_model.panBy(-kKeyPan * lanesWidth());
            return;
        case Qt::Key_D:
        case Qt::Key_Right:
            m_model.panBy(kKeyPan * lanesWidth());
            return;
        case Qt::Key_F:
            m_model.fit();
            return;
        case Qt::Key_N:
            m_model.goToStep(event->modifiers() & Qt::ShiftModifier ? -1 : 1);
            return;
        case Qt::Key_G:
            emit placeWanted();
            return;
        case Qt::Key_Z:
            m_model.zoomToSelection();
            return;
        case Qt::Key_Backspace:
            m_model.back();
            return;
        case Qt::Key_Slash:
            emit searchWanted();
            return;
        case Qt::Key_BracketLeft:
            emit flowWanted(-1);
            return;
        case Qt::Key_BracketRight:
            emit flowWanted(1);
            return;
        case Qt::Key_Question:
            emit helpWanted();
            return;
        case Qt::Key_Up:
            m_scroll->setValue(m_scroll->value() - m_scroll->singleStep());
            return;
        case Qt::Key_Down:
            m_scroll->setValue(m_scroll->value() + m_scroll->singleStep());
            return;
        case Qt::Key_PageUp:
            m_scroll->setValue(m_scroll->value() - m_scroll->pageStep());
            return;
        case Qt::Key_PageDown:
            m_scroll->setValue(m_scroll->value() + m_scroll->pageStep());
            return;
        case Qt::Key_Home:
            m_scroll->setValue(0);
            return;
        case Qt::Key_End:
            m_scroll->setValue(m_scroll->maximum());
            return;
        case Qt::Key_P: {
            const Row* row = rowAt(m_pointer);
            const int32_t rank = m_model.selection().valid() ? m_model.selection().rank : row ? row->rank : -1;
            if (rank >= 0) m_model.changeLanes([&](LaneTree& lanes) { lanes.togglePin(rank); });
            return;
        }
        case Qt::Key_Escape:
            m_model.selectTime(std::nullopt);
            m_model.select({});
            emit leaveWanted();
            return;
        default:
            QWidget::keyPressEvent(event);
    }
}

void TimelineView::wheelEvent(QWheelEvent* event) {
    const QPoint turned = event->angleDelta();
    if (event->modifiers() & Qt::ControlModifier) {
        zoom(laneX(event->position()), std::pow(kKeyZoom, -turned.y() / 120.0));
    } else if (event->modifiers() & Qt::ShiftModifier || std::abs(turned.x()) > std::abs(turned.y())) {
        // Some window systems turn the wheel sideways themselves while Shift is held.
        const int amount = turned.x() != 0 ? turned.x() : turned.y();
        m_model.panBy(-amount);
    } else {
        m_scroll->setValue(m_scroll->value() - turned.y() / 2);
    }
    event->accept();
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
    m_pressed = event->position();
    if (event->button() == Qt::MiddleButton ||
        (event->button() == Qt::LeftButton && event->modifiers() & Qt::ShiftModifier)) {
        m_drag = Drag::pan;
        m_model.remember();
        setCursor(Qt::ClosedHandCursor);
    } else if (event->button() == Qt::LeftButton && isOnBorder(m_pressed)) {
        m_drag = Drag::border;
    } else if (event->button() == Qt::LeftButton && m_pressed.x() < m_labelWidth) {
        const Row* row = rowAt(m_pressed);
        m_drag = Drag::row;
        m_draggedRank = row && row->kind == RowKind::summary ? row->rank : -1;
    } else if (event->button() == Qt::LeftButton) {
        m_drag = Drag::select;
        m_pressedTime = m_model.axis().timeAt(laneX(m_pressed));
    }
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
    const QPointF position = event->position();
    if (m_drag == Drag::none) setCursor(isOnBorder(position) ? Qt::SplitHCursor : Qt::ArrowCursor);
    if (m_drag == Drag::border) {
        setLabelWidth(static_cast<int>(position.x()));
    } else if (m_drag == Drag::pan) {
        m_model.panBy(m_pointer.x() - position.x());
        m_scroll->setValue(m_scroll->value() + static_cast<int>(m_pointer.y() - position.y()));
    } else if (m_drag == Drag::select && std::abs(position.x() - m_pressed.x()) > kClickSlop) {
        const int64_t now = m_model.axis().timeAt(std::clamp(laneX(position), 0.0, static_cast<double>(lanesWidth())));
        m_model.selectTime(TimeRange{std::min(m_pressedTime, now), std::max(m_pressedTime, now)});
    }
    m_pointer = position;
    update();
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
    const QPointF position = event->position();
    const bool click =
        std::abs(position.x() - m_pressed.x()) <= kClickSlop && std::abs(position.y() - m_pressed.y()) <= kClickSlop;
    const Drag drag = std::exchange(m_drag, Drag::none);
    unsetCursor();
    if (drag == Drag::select && click) {
        m_model.selectTime(std::nullopt);
        m_model.select(eventAt(position));
    } else if (drag == Drag::row && click) {
        const Row* row = rowAt(position);
        if (row && row->kind == RowKind::group)
            m_model.changeLanes([group = row->group](LaneTree& lanes) { lanes.toggleGroup(group); });
        if (row && row->kind == RowKind::summary && row->excerpt)
            scrollToRank(row->rank);
        else if (row && row->kind == RowKind::summary)
            m_model.changeLanes([rank = row->rank](LaneTree& lanes) { lanes.toggleRank(rank); });
    } else if (drag == Drag::row && m_draggedRank >= 0) {
        const Row* row = rowAt(position);
        m_model.changeLanes([&](LaneTree& lanes) { lanes.moveRank(m_draggedRank, row ? row->rank : -1); });
    }
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
    if (laneX(event->position()) >= 0 && m_model.selection().valid()) m_model.zoomToSelection();
}

// Keys act where the pointer is, whatever panel was clicked before; not while something is typed.
void TimelineView::enterEvent(QEnterEvent*) {
    if (qobject_cast<QLineEdit*>(QApplication::focusWidget()) == nullptr) setFocus(Qt::MouseFocusReason);
}

void TimelineView::leaveEvent(QEvent*) {
    m_pointer = {-1, -1};
    update();
}

void TimelineView::addEventActions(QMenu& menu, EventRef event) {
    m_model.select(event);
    menu.addAction("Zoom to the event", this, [this] { m_model.zoomToSelection(); });
    menu.addAction("Copy its name", this,
                   [this, event] { QApplication::clipboard()->setText(m_model.eventName(event)); });
    menu.addAction("Find all of its name", this, [this, event] { emit nameWanted(m_model.eventName(event)); });
    menu.addAction("Statistics of its time", this, [this, event] {
        const TrackEvent of = m_model.event(event);
        m_model.selectTime(TimeRange{of.startNs, of.startNs + std::max<int64_t>(1, of.durNs)});
    });
    menu.addSeparator();
}

void TimelineView::contextMenuEvent(QContextMenuEvent* request) {
    const Row* found = rowAt(request->pos());
    if (!found) return;
    const Row row = *found;  // a change of lanes makes new rows
    QMenu menu(this);
    if (const EventRef event = eventAt(request->pos()); event.valid()) addEventActions(menu, event);
    const auto add = [&](const QString& text, auto change) {
        menu.addAction(text, this, [this, change] { m_model.changeLanes(change); });
    };
    if (row.rank >= 0) {
        add("Pin or unpin rank", [rank = row.rank](LaneTree& lanes) { lanes.togglePin(rank); });
        add("Hide rank", [rank = row.rank](LaneTree& lanes) { lanes.hideRank(rank); });
    }
    if (row.kind == RowKind::lane)
        add("Hide this lane on all ranks", [label = row.label](LaneTree& lanes) {
            LaneChoices choices = lanes.choices();
            choices.hiddenLanes.insert(label);
            lanes.setChoices(std::move(choices));
        });
    add("Show all that is hidden", [](LaneTree& lanes) { lanes.showAll(); });
    add("Expand all ranks", [](LaneTree& lanes) { lanes.setAllExpanded(true); });
    add("Collapse all ranks", [](LaneTree& lanes) { lanes.setAllExpanded(false); });
    menu.exec(request->globalPos());
}

const Curve* TimelineView::curveOf(const Row& row) const {
    const RankTracks* tracks = row.kind == RowKind::lane ? m_model.lanes().tracks(row.rank) : nullptr;
    if (!tracks || row.lane >= tracks->lanes.size() || tracks->lanes[row.lane].kind != LaneKind::counter)
        return nullptr;
    return &tracks->lanes[row.lane].curve;
}

// Of an event, of a counter's value, of what a rank's line shows there, or of a label that is cut.
QString TimelineView::tipAt(QPointF position) const {
    const Row* row = rowAt(position);
    if (!row) return {};
    if (row->kind == RowKind::summary && !m_model.lanes().trouble(row->rank).empty())
        return QString("<p>%1: %2</p>").arg(text(row->label), text(m_model.lanes().trouble(row->rank)));
    if (laneX(position) < 0) return row->kind == RowKind::lane ? text(row->label) : QString();
    const int64_t time = m_model.axis().timeAt(laneX(position));
    if (const Curve* curve = curveOf(*row)) {
        const auto value = curve->at(time);
        return value ? QString("%1\n%2").arg(QString::fromStdString(displayText(row->label)),
                                             QString::fromStdString(curveText(curve->unit(), *value)))
                     : QString();
    }
    if (row->kind == RowKind::summary) {
        const QString note = noteAt(position), doing = activityTip(*row, time);
        return note.isEmpty() ? doing : note + "\n" + doing;
    }
    const EventRef hovered = eventAt(position);
    if (!hovered.valid()) return {};
    const TrackEvent shown = m_model.event(hovered);
    return QString("%1\n%2\n%3")
        .arg(m_model.eventName(hovered), QString::fromStdString(durationText(shown.durNs)), m_model.place(hovered));
}

// What the mark under the pointer shows.
QString TimelineView::noteAt(QPointF position) const {
    const RowArea area = position.y() < lanesTop() ? pinnedArea() : scrolledArea();
    const std::vector<QString>& notes = m_model.evidence().notes;
    for (size_t i = 0; i < notes.size(); ++i)
        if (areaOfMark(i, area).contains(position)) return notes[i];
    return {};
}

// Why the device stands still at a time, where the analysis knows.
QString TimelineView::idleAt(const RankTracks& tracks, int64_t time) const {
    if (const size_t lane = tracks.idleLane(); lane < tracks.lanes.size()) {
        const Track& gaps = tracks.lanes[lane].parts.front().track;
        const size_t gap = gaps.firstEndingAfter(time);
        if (gap < gaps.size() && gaps.startNs(gap) <= time)
            return m_model.eventName({tracks.rank, static_cast<uint32_t>(lane), 0, static_cast<uint32_t>(gap)});
    }
    return "idle";
}

// What the device does at a time: exactly, from the events.
QString TimelineView::activityTip(const Row& row, int64_t time) const {
    constexpr std::array<const char*, kActivities> kNames{"compute", "compute with communication behind it",
                                                          "waits for other ranks", "transfer that nothing hides",
                                                          "copies that nothing hides"};
    const RankTracks* tracks = m_model.lanes().tracks(row.rank);
    if (!tracks) return {};
    const int64_t pixel = std::max<int64_t>(1, static_cast<int64_t>(1 / m_model.axis().pixelsPerNs()));
    const ActivityTimes times = activityIn(tracks->deviceTracks(), {time - pixel, time + pixel});
    QStringList lines{QString::fromStdString(displayText(row.label))};
    int64_t busy = 0;
    for (size_t a = 0; a < kActivities; ++a) {
        busy += times[a];
        if (times[a] > 0) lines << kNames[a];
    }
    if (busy < 2 * pixel) lines << idleAt(*tracks, time);
    if (isOnPath(row.rank, time)) lines << "on the critical path";
    return lines.join("\n");
}

bool TimelineView::isOnPath(int32_t rank, int64_t time) const {
    const std::vector<PathStretch>& path = m_model.run()->path;
    const auto after =
        std::ranges::upper_bound(path, time, {}, [](const PathStretch& each) { return each.time.beginNs; });
    return after != path.begin() && std::prev(after)->rank == rank && std::prev(after)->time.contains(time);
}

bool TimelineView::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const QString tip = tipAt(help->pos()); tip.isEmpty())
        QToolTip::hideText();
    else
        QToolTip::showText(help->globalPos(), tip, this);
    return true;
}

}  // namespace rankscope::gui

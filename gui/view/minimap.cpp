// SPDX-License-Identifier: Apache-2.0
#include "gui/view/minimap.h"

#include <QElapsedTimer>
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <set>

namespace rankscope::gui {
namespace {

constexpr int kMsBetweenCounts = 120;
constexpr int kRestPerCount = 8;   // with a thousand ranks a count takes its time; this bounds its share of the thread
constexpr double kLeastFrame = 7;  // pixels
constexpr double kLeastStepGap = 4;  // steps nearer to each other are not drawn
constexpr double kWheelZoom = 1.5;

}  // namespace

Minimap::Minimap(TimelineModel& model, int left, int right, QWidget* parent)
    : QWidget(parent), m_model(model), m_left(left), m_right(right) {
    setObjectName("minimap");
    setFixedHeight(kHeight);
    setToolTip("The whole run, all ranks together. Click or drag: go there. Wheel: zoom.");
    m_soon.setSingleShot(true);
    m_soon.setInterval(kMsBetweenCounts);
    connect(&m_soon, &QTimer::timeout, this, &Minimap::count);
    connect(&m_model, &TimelineModel::runChanged, this, [this] {
        m_overview = {};
        count();
    });
    connect(&m_model, &TimelineModel::lanesChanged, this, [this] {
        if (!isUpToDate() && !m_soon.isActive()) m_soon.start();
    });
    for (const auto changed :
         {&TimelineModel::viewChanged, &TimelineModel::timeSelectionChanged, &TimelineModel::marksChanged})
        connect(&m_model, changed, this, qOverload<>(&QWidget::update));
}

void Minimap::setDark(bool dark) {
    m_palette = &Palette::of(dark);
    update();
}

void Minimap::setLeft(int left) {
    m_left = left;
    m_soon.start();
    update();
}

QRectF Minimap::pictureArea() const {
    return QRectF(m_left, 3, std::max(1, width() - m_left - m_right), kHeight - 6);
}

double Minimap::xOf(int64_t ns) const {
    const TimeRange whole = m_model.axis().whole();
    const QRectF area = pictureArea();
    return area.left() + static_cast<double>(ns - whole.beginNs) / static_cast<double>(whole.span()) * area.width();
}

int64_t Minimap::timeAt(double x) const {
    const TimeRange whole = m_model.axis().whole();
    const QRectF area = pictureArea();
    return whole.beginNs + static_cast<int64_t>(std::clamp((x - area.left()) / area.width(), 0.0, 1.0) *
                                                static_cast<double>(whole.span()));
}

QRectF Minimap::frameArea() const {
    const TimeRange visible = m_model.axis().visible();
    const QRectF area = pictureArea();
    const double left = std::clamp(xOf(visible.beginNs), area.left(), area.right()),
                 right = std::clamp(xOf(visible.endNs), area.left(), area.right());
    const double missing = std::max(0.0, kLeastFrame - (right - left));
    return QRectF(left - missing / 2, area.top() - 1, right - left + missing, area.height() + 2);
}

bool Minimap::isUpToDate() const {
    return m_overview.columns() == static_cast<size_t>(pictureArea().width()) &&
           m_overview.whole() == m_model.axis().whole() && m_loadedWhenCounted == m_model.lanes().loaded().size();
}

void Minimap::count() {
    if (isUpToDate()) return;
    const auto columns = static_cast<size_t>(pictureArea().width());
    // All ranks again: adding one costs the columns of a picture, whatever its events.
    QElapsedTimer took;
    took.start();
    m_overview = Overview(m_model.axis().whole(), columns);
    for (const OutlineRank& rank : m_model.lanes().outline().ranks) m_overview.add(m_model.lanes().activity(rank.rank));
    m_loadedWhenCounted = m_model.lanes().loaded().size();
    m_soon.setInterval(std::max(kMsBetweenCounts, kRestPerCount * static_cast<int>(took.elapsed())));
    update();
}

void Minimap::resizeEvent(QResizeEvent*) {
    m_soon.start();
}

void Minimap::paintEvent(QPaintEvent*) {
    if (!m_model.run()) return;
    if (!isUpToDate() && !m_soon.isActive()) m_soon.start();
    QPainter painter(this);
    const QRectF area = pictureArea();
    painter.fillRect(rect(), colour(m_palette->header));
    painter.fillRect(area, colour(m_palette->alternate));
    QFont font = painter.font();
    font.setPixelSize(12);
    painter.setFont(font);
    painter.setPen(colour(m_palette->dimText));
    painter.drawText(QRectF(6, 0, m_left - 12, height()), Qt::AlignVCenter | Qt::AlignRight,
                     QString("whole run, %1").arg(QString::fromStdString(durationText(m_model.axis().whole().span()))));
    paintActivity(painter, area);
    paintMarks(painter, area);
    // What is out of view is dimmed, so that the frame is found at a glance.
    const QRectF frame = frameArea();
    QColor veil = colour(m_palette->background);
    veil.setAlpha(150);
    painter.fillRect(QRectF(area.left(), area.top(), std::max(0.0, frame.left() - area.left()), area.height()), veil);
    painter.fillRect(QRectF(frame.right(), area.top(), std::max(0.0, area.right() - frame.right()), area.height()),
                     veil);
    painter.setPen(QPen(colour(m_palette->text), 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(frame);
}

void Minimap::paintActivity(QPainter& painter, QRectF area) const {
    for (size_t i = 0; i < m_overview.columns(); ++i) {
        const Overview::Shares shares = m_overview.column(i);
        double bottom = area.bottom();
        for (size_t a = 0; a < kActivities; ++a) {
            if (shares[a] <= 0) continue;
            const double height = std::min(1.0, static_cast<double>(shares[a])) * area.height();
            painter.fillRect(QRectF(area.left() + static_cast<double>(i), bottom - height, 1, height),
                             colour(m_palette->activities[a]));
            bottom -= height;
        }
    }
}

void Minimap::paintMarks(QPainter& painter, QRectF area) const {
    painter.setPen(colour(m_palette->text));
    double last = -kLeastStepGap;
    const RunInfo& run = *m_model.run();
    for (const StepInfo& step : run.steps) {
        if (step.rank != run.steps.front().rank) break;
        const double x = xOf(step.range.beginNs);
        if (x - last < kLeastStepGap) continue;
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.top() + 4));
        last = x;
    }
    if (const auto time = m_model.timeSelection()) {
        QColor shade = colour(m_palette->selection);
        shade.setAlpha(60);
        painter.fillRect(
            QRectF(xOf(time->beginNs), area.top(), std::max(1.0, xOf(time->endNs) - xOf(time->beginNs)), area.height()),
            shade);
    }
    std::set<int> found;
    for (const EventRef& hit : m_model.hits())
        if (m_model.isValid(hit)) found.insert(static_cast<int>(xOf(m_model.event(hit).startNs)));
    for (const int x : found) painter.fillRect(QRectF(x, area.top() - 1, 1, 7), colour(m_palette->selection));
    std::set<int> places;  // evidence may be thousands of events; the picture has as many columns as it has
    for (const EventRef& mark : m_model.marks())
        if (m_model.isValid(mark)) places.insert(static_cast<int>(xOf(m_model.event(mark).startNs)));
    for (const MarkedTime& marked : m_model.markedTimes()) places.insert(static_cast<int>(xOf(marked.time.beginNs)));
    for (const int x : places) painter.fillRect(QRectF(x - 1, area.bottom() - 6, 3, 7), colour(m_palette->mark));
}

void Minimap::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || !m_model.run()) return;
    m_dragging = true;
    m_model.remember();
    const TimeRange visible = m_model.axis().visible();
    const int64_t time = timeAt(event->position().x());
    // Inside the frame the hand takes hold of it; elsewhere the frame comes to the hand.
    m_held = frameArea().contains(event->position()) ? time - (visible.beginNs + visible.span() / 2) : 0;
    mouseMoveEvent(event);
}

void Minimap::mouseMoveEvent(QMouseEvent* event) {
    if (!m_dragging) return;
    m_model.move(centredAt(m_model.axis().visible(), timeAt(event->position().x()) - m_held, m_model.axis().room()));
}

void Minimap::mouseReleaseEvent(QMouseEvent*) {
    m_dragging = false;
}

void Minimap::wheelEvent(QWheelEvent* event) {
    m_model.zoomAt(m_model.axis().width() / 2, std::pow(kWheelZoom, -event->angleDelta().y() / 120.0));
    event->accept();
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/chart_view.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <array>

#include "gui/timeline/display_text.h"

namespace rankscope::gui {
namespace {

constexpr int kMargin = 8;
constexpr size_t kLongestLabel = 1000;

}  // namespace

QString chartText(const std::string& text) {
    return QString::fromStdString(displayText(text, kLongestLabel));
}

ChartView::ChartView(QWidget* parent) : QWidget(parent) {
    setMouseTracking(true);
    showText("");
}

void ChartView::setDark(bool dark) {
    m_palette = &Palette::of(dark);
    update();
}

void ChartView::showText(const QString& text) {
    m_nothing = text;
    m_note.clear();
    update();
}

void ChartView::setTexts(const std::string& nothing, const std::string& note) {
    m_nothing = chartText(nothing);
    m_note = chartText(note);
    update();
}

QColor ChartView::seriesColour(int series) const {
    constexpr std::array<Rgb, 7> kLight{0xff0072b2, 0xffd55e00, 0xff009e73, 0xffcc79a7,
                                        0xffe69f00, 0xff56b4e9, 0xff666666};
    constexpr std::array<Rgb, 7> kDark{0xff56b4e9, 0xffe69f00, 0xff009e73, 0xffcc79a7,
                                       0xffd55e00, 0xfff0e442, 0xffaaaaaa};
    if (series < 0) return colour(m_palette->dimText);
    return colour((isDark() ? kDark : kLight)[static_cast<size_t>(series) % kLight.size()]);
}

void ChartView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), colour(m_palette->background));
    QFont font = painter.font();
    font.setPixelSize(12);
    painter.setFont(font);
    const QRectF inside = QRectF(rect()).adjusted(kMargin, kMargin, -kMargin, -kMargin);
    if (!m_nothing.isEmpty()) {
        painter.setPen(colour(m_palette->dimText));
        painter.drawText(inside, static_cast<int>(Qt::AlignCenter) | Qt::TextWordWrap, m_nothing);
        return;
    }
    // The note takes two lines at most, so that a small dock still has room for the picture; the tool tip of the note
    // has all of it.
    font.setPixelSize(11);
    painter.setFont(font);
    const QFontMetricsF metrics(font);
    const double lines = height() > 220 ? 2 : 1;
    const QRectF noteArea(inside.left(), inside.bottom() - lines * metrics.lineSpacing(), inside.width(),
                          lines * metrics.lineSpacing());
    painter.setPen(colour(m_palette->dimText));
    const QString note = metrics.elidedText(m_note, Qt::ElideRight, noteArea.width() * lines * 0.97);
    painter.drawText(noteArea, static_cast<int>(Qt::AlignLeft | Qt::AlignTop) | Qt::TextWordWrap, note);
    font.setPixelSize(12);
    painter.setFont(font);
    const QRectF area = inside.adjusted(0, 0, 0, -noteArea.height() - 6);
    if (area.width() > 60 && area.height() > 60) paintChart(painter, area);
}

void ChartView::mouseMoveEvent(QMouseEvent* event) {
    m_pointer = event->position();
    setCursor(m_nothing.isEmpty() && targetAt(m_pointer).valid() ? Qt::PointingHandCursor : Qt::ArrowCursor);
    update();
}

void ChartView::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || !m_nothing.isEmpty()) return;
    if (const ChartTarget target = targetAt(event->position()); target.valid()) emit targetChosen(target);
}

QPoint ChartView::somewhere() const {
    if (!m_nothing.isEmpty()) return {-1, -1};
    for (int y = 0; y < height(); y += 3)
        for (int x = 0; x < width(); x += 3)
            if (targetAt(QPointF(x, y)).valid()) return {x, y};
    return {-1, -1};
}

void ChartView::leaveEvent(QEvent*) {
    m_pointer = {-1, -1};
    update();
}

bool ChartView::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip || !m_nothing.isEmpty()) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const QString tip = tipAt(help->pos());
    const bool onNote = tip.isEmpty() && help->pos().y() > height() - 40;
    QToolTip::showText(help->globalPos(), onNote ? "<p>" + m_note.toHtmlEscaped() + "</p>" : tip, this);
    return true;
}

}  // namespace rankscope::gui

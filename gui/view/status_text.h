// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QHelpEvent>
#include <QLabel>
#include <QPainter>
#include <QTextDocument>
#include <QToolTip>

namespace rankscope::gui {

/// A line of text that says where it is cut, and tells all of it as a tool tip then, before what the tip says by
/// itself: half a number reads as another.
class StatusText : public QLabel {
  public:
    using QLabel::QLabel;
    QSize minimumSizeHint() const override { return {0, QLabel::minimumSizeHint().height()}; }

  protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        painter.setPen(palette().color(QPalette::WindowText));
        painter.drawText(contentsRect(), Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine, shown());
    }
    bool event(QEvent* event) override {
        if (event->type() != QEvent::ToolTip || shown() == text()) return QLabel::event(event);
        QString all = text();
        if (!toolTip().isEmpty()) all += "\n" + toolTip();
        QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), Qt::convertFromPlainText(all), this);
        return true;
    }

  private:
    QString shown() const { return fontMetrics().elidedText(text(), Qt::ElideRight, contentsRect().width()); }
};

}  // namespace rankscope::gui

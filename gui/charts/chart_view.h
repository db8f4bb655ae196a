// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QWidget>

#include "gui/charts/series/chart_target.h"
#include "gui/view/palette.h"

namespace rankscope::gui {

/// What all charts share: colours, the line that says how it was counted, the text when there is nothing to show, and a
/// click that leads to the timeline.
class ChartView : public QWidget {
    Q_OBJECT

  public:
    explicit ChartView(QWidget* parent = nullptr);

    void setDark(bool dark);
    /// Until the numbers are there.
    void showText(const QString& text);
    /// A place in it that leads somewhere, or (-1, -1).
    QPoint somewhere() const;
    QSize sizeHint() const override { return {640, 320}; }
    QSize minimumSizeHint() const override { return {200, 120}; }

  signals:
    void targetChosen(rankscope::gui::ChartTarget target);

  protected:
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    bool event(QEvent* event) override;

    /// Paints into `area`; what is under the pointer is marked.
    virtual void paintChart(QPainter& painter, QRectF area) = 0;
    virtual QString tipAt(QPointF position) const = 0;
    virtual ChartTarget targetAt(QPointF position) const = 0;

    const Palette& colours() const noexcept { return *m_palette; }
    bool isDark() const noexcept { return m_palette == &Palette::dark(); }
    /// Colour of the n-th series: Okabe and Ito's, without those that are faint on the background.
    QColor seriesColour(int series) const;
    QPointF pointer() const noexcept { return m_pointer; }
    void setTexts(const std::string& nothing, const std::string& note);

  private:
    const Palette* m_palette = &Palette::light();
    QString m_nothing, m_note;
    QPointF m_pointer{-1, -1};
};

/// A text of the numbers' side, safe to show.
QString chartText(const std::string& text);

}  // namespace rankscope::gui

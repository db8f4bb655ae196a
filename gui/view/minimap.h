// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QTimer>
#include <QWidget>

#include "gui/timeline/overview.h"
#include "gui/view/palette.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// The whole run in one line, all ranks together, with a frame around what the timeline shows. A click or drag moves
/// the frame, the wheel zooms it.
class Minimap : public QWidget {
    Q_OBJECT

  public:
    /// `left` and `right`: pixels beside the picture, so that it lies over the lanes.
    Minimap(TimelineModel& model, int left, int right, QWidget* parent = nullptr);

    void setDark(bool dark);
    /// Pixels left of the picture.
    void setLeft(int left);
    QSize sizeHint() const override { return {640, kHeight}; }
    /// The picture, in widget coordinates.
    QRectF pictureArea() const;
    /// The frame around what is in view, in widget coordinates; wide enough to be seen and held.
    QRectF frameArea() const;
    /// The picture shows all that is known.
    bool isUpToDate() const;

  protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;

  private:
    static constexpr int kHeight = 40;

    void count();  ///< what the picture shows, anew where it must
    int64_t timeAt(double x) const;
    double xOf(int64_t ns) const;
    void paintActivity(QPainter& painter, QRectF area) const;
    void paintMarks(QPainter& painter, QRectF area) const;

    TimelineModel& m_model;
    int m_left, m_right;
    const Palette* m_palette = &Palette::light();
    Overview m_overview;
    size_t m_loadedWhenCounted = 0;
    QTimer m_soon;       // ranks arrive one by one: the picture follows a few times a second
    int64_t m_held = 0;  // time between the frame's middle and the hand
    bool m_dragging = false;
};

}  // namespace rankscope::gui

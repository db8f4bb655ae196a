// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QElapsedTimer>
#include <QMenu>
#include <QScrollBar>
#include <QTimer>
#include <QWidget>
#include <cmath>

#include "gui/timeline/label_places.h"
#include "gui/view/lane_canvas.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// The timeline: ruler, lane labels, lanes, and the hands that move them. Draws what the model holds; holds no state of
/// the run itself.
class TimelineView : public QWidget {
    Q_OBJECT

  public:
    explicit TimelineView(TimelineModel& model, QWidget* parent = nullptr);

    static constexpr int kLabelWidth = 210;  ///< until it is dragged
    static constexpr int kStepsHeight = 14;  ///< numbers of steps, above the times of the ruler
    static constexpr int kRulerHeight = kStepsHeight + 26;
    static constexpr int kBelowPinned = 3;  ///< a line between what stays and what scrolls

    /// Scrolls until the row of the selected event is in sight.
    void scrollToSelection();
    /// Scrolls until the line of a rank is in sight.
    void scrollToRank(int32_t rank);
    /// Where an event is drawn, in widget coordinates: among what stays above the others where it is there, else among
    /// what scrolls; null when its row is not shown.
    QRectF areaOf(EventRef event) const;
    EventRef eventAt(QPointF position) const;
    /// The critical path on ranks' lines, where the analysis knows it.
    void showPath(bool isShown);
    void setDark(bool dark);
    /// Of the column of labels, in pixels; cut to where labels and lanes can both be seen.
    void setLabelWidth(int width);
    int labelWidth() const noexcept { return m_labelWidth; }
    int scrollBarWidth() const { return m_scroll->sizeHint().width(); }
    int rowsTop() const { return lanesTop(); }  ///< first pixel of the rows that scroll
    int scrollTop() const { return m_scroll->value(); }

  signals:
    void searchWanted();
    void nameWanted(QString name);   ///< all events of this name are to be found
    void flowWanted(int direction);  ///< -1 to what caused the selected event, 1 to what it causes
    void helpWanted();
    void placeWanted();  ///< a time or step to go to is to be asked for
    void leaveWanted();  ///< Escape: also what is marked is to go
    void paletteChanged();
    void labelWidthChanged(int width);

  protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void enterEvent(QEnterEvent* event) override;
    void leaveEvent(QEvent* event) override;
    bool event(QEvent* event) override;

  private:
    static constexpr int kLeastLabelHeight = 13;  // of a row with a text of 12 pixels

    enum class Drag { none, select, pan, row, border };

    // The rows that stay and those that scroll lie above each other, and are painted alike.
    struct RowArea {
        const std::vector<Row>* rows;
        int origin;       // where the first row begins, in sight or not
        int top, bottom;  // what of it is in sight
    };
    RowArea pinnedArea() const;
    RowArea scrolledArea() const;
    QRectF areaOf(EventRef event, const RowArea& area) const;
    QRectF areaOf(const MarkedTime& marked, const RowArea& area) const;
    QRectF areaOfMark(size_t note, const RowArea& area) const;
    QRectF areaInSight(EventRef event) const;
    bool isPinnedOnLane(EventRef event) const;
    QString noteAt(QPointF position) const;
    void reveal(const Row* row);

    int lanesTop() const;  ///< first pixel of the rows that scroll
    int lanesWidth() const;
    const Row* rowAt(QPointF position, int* top = nullptr) const;
    void addEventActions(QMenu& menu, EventRef event);
    const Curve* curveOf(const Row& row) const;
    QString tipAt(QPointF position) const;
    QString idleAt(const RankTracks& tracks, int64_t time) const;
    QString activityTip(const Row& row, int64_t time) const;
    bool isOnPath(int32_t rank, int64_t time) const;
    double laneX(QPointF position) const { return position.x() - m_labelWidth; }
    bool isOnBorder(QPointF position) const { return std::abs(position.x() - m_labelWidth) <= 3; }
    void updateScroll();
    void zoom(double x, double factor);
    void paintRuler(QPainter& painter);
    void paintSteps(QPainter& painter);
    void paintRowLabels(QPainter& painter, const RowArea& area);
    void paintRowLabel(QPainter& painter, const LabelPlace& label, const QString& owner);
    bool isToFix(const Row& row) const;
    QString placesOf(int32_t rank) const;
    void paintOverlay(QPainter& painter);
    void paintTimeSelection(QPainter& painter);
    void paintPath(QPainter& painter, const RowArea& area);
    void paintMarks(QPainter& painter, const RowArea& area);
    void paintScales(QPainter& painter, const RowArea& area);
    void paintFlows(QPainter& painter);
    void paintOutline(QPainter& painter, EventRef event, const RowArea& area, const QPen& pen);
    void paintLanes(QPainter& painter, LaneCanvas& canvas, const std::vector<Row>& rows, int top, int scrollTop,
                    int height);
    void paintHits(QPainter& painter, const RowArea& area);
    void paintNotes(QPainter& painter, const RowArea& area);

    TimelineModel& m_model;
    QScrollBar* m_scroll;
    LaneCanvas m_canvas, m_pinnedCanvas;
    const Palette* m_palette;
    bool m_isPathShown = true;
    int m_labelWidth = kLabelWidth;
    Drag m_drag = Drag::none;
    QPointF m_pressed, m_pointer{-1, -1};
    int64_t m_pressedTime = 0;
    int32_t m_draggedRank = -1;
    QElapsedTimer m_sinceZoom;
    // Ranks arrive one by one: where a frame takes long, painting each of them would take most of the time.
    QTimer m_soon;
};

}  // namespace rankscope::gui

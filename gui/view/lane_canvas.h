// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QImage>
#include <QPainter>
#include <vector>

#include "gui/view/palette.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// Where an event with a readable name is, in logical pixels of the canvas.
struct EventLabel {
    QRectF area;
    EventRef event;
};

/// Paints rows of lanes into an image, pixel line by pixel line: a frame costs in proportion to the picture, not to the events.
class LaneCanvas {
public:
    /// Rows from `scrollTop` on (logical pixels) into an image of `size` logical pixels at `ratio` device pixels each.
    const QImage& paint(const TimelineModel& model, const std::vector<Row>& rows, int scrollTop, QSize size, double ratio, const Palette& palette);
    /// Labels of the last paint().
    const std::vector<EventLabel>& labels() const noexcept { return m_labels; }

private:
    void paintLane(const Row& row, const Lane& lane, int top, int height);
    void paintSummary(const RankTracks& tracks, int top, int height);
    void paintNames(const TimelineModel& model);
    Rgb* pixelLine(int y) { return reinterpret_cast<Rgb*>(m_image.scanLine(y)); }
    void fillRows(int top, int height, Rgb colour);

    QImage m_image;
    TimeAxis m_axis;              // of device pixels
    double m_ratio = 1;
    const Palette* m_palette = nullptr;
    std::vector<Rgb> m_line;
    TrackDrawing m_drawing;
    std::vector<ActivityColumn> m_columns;
    std::vector<EventLabel> m_labels;
};

}  // namespace rankscope::gui

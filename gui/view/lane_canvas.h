// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QImage>
#include <memory>
#include <vector>

#include "gui/timeline/overview.h"
#include "gui/timeline/paint_crew.h"
#include "gui/view/name_stamps.h"
#include "gui/view/palette.h"
#include "gui/view/timeline_model.h"

namespace rankscope::gui {

/// Pixels above and below the stacks of a rank's or group's line of `height`: low lines touch each other.
constexpr int stackGap(int height) {
    return height < 8 ? 0 : 2;
}

/// What the ranks below a group's line do on average in the axis' visible range, of those of which anything is known.
Overview groupActivity(const TimelineModel& model, int64_t group, const TimeAxis& axis);

/// What is drawn on the line of a rank; without bins on all other lines, and where nothing is known of the rank.
ActivityView summaryOf(const TimelineModel& model, const Row& row);

/// Paints rows of lanes into an image, pixel line by pixel line: a frame costs in proportion to the picture, not to the
/// events. Rows are dealt out to several threads; the picture is the same with any number of them.
class LaneCanvas {
  public:
    /// As many threads as the machine has, eight at most.
    LaneCanvas();
    explicit LaneCanvas(size_t threads) : m_threads(threads) {}

    /// Rows from `scrollTop` on (logical pixels) into an image of `size` logical pixels at `ratio` device pixels each.
    const QImage& paint(const TimelineModel& model, const std::vector<Row>& rows, int scrollTop, QSize size,
                        double ratio, const Palette& palette);

  private:
    // A row in the picture, and a box with room for its event's name; in device pixels.
    struct PlacedRow {
        const Row* row;
        int top, height;
    };
    struct PlacedName {
        uint64_t key;  // of its stamp
        EventRef event;
        Rgb ink;
        int left, right, top, height;
    };
    // What a thread needs to paint a row.
    struct Brush {
        std::vector<Rgb> line;
        TrackDrawing drawing;
        std::vector<ActivityColumn> columns;
        std::vector<float> heights;
        std::vector<PlacedName> names;
    };

    void prepare(const TimelineModel& model, QSize size, double ratio, const Palette& palette);
    void placeRows(const std::vector<Row>& rows, int scrollTop, int height);
    void forEach(size_t items, const std::function<void(size_t worker, size_t item)>& paint);
    void paintRow(const TimelineModel& model, const PlacedRow& placed, Brush& brush);
    void paintLane(const PlacedRow& placed, const Lane& lane, Brush& brush);
    void paintCurve(const PlacedRow& placed, const Curve& curve, Brush& brush);
    void paintSummary(const PlacedRow& placed, const ActivityView& activity, Brush& brush);
    void paintGroup(const TimelineModel& model, const PlacedRow& placed, Brush& brush);
    void paintStacks(const PlacedRow& placed, Rgb background, const Brush& brush);
    void paintNames(const TimelineModel& model);
    void pressName(const PlacedName& name);
    Rgb* pixelLine(int y) noexcept { return m_pixels + static_cast<ptrdiff_t>(y) * m_stride; }
    void fillRows(int top, int height, Rgb colour);

    size_t m_threads;
    std::unique_ptr<PaintCrew> m_crew;  // from the first picture on that is worth it
    QImage m_image;
    Rgb* m_pixels = nullptr;  // of the image; asking it is not for several threads
    ptrdiff_t m_stride = 0;   // pixels from a line to the next
    TimeAxis m_axis;          // of device pixels
    double m_ratio = 1;
    const Palette* m_palette = nullptr;
    std::vector<PlacedRow> m_rows;
    std::vector<Brush> m_brushes;          // one for each thread
    std::shared_ptr<const RunInfo> m_run;  // whose names the stamps are
    NameStamps m_stamps;
};

}  // namespace rankscope::gui

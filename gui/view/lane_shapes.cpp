// SPDX-License-Identifier: Apache-2.0
#include "gui/view/lane_shapes.h"

#include <QFontMetricsF>
#include <algorithm>

#include "gui/timeline/lane_line.h"
#include "gui/view/lane_canvas.h"

namespace rankscope::gui {
namespace {

constexpr double kMinNameWidth = 34;  // three letters and an ellipsis

class LaneShapes {
  public:
    LaneShapes(QPainter& painter, const TimelineModel& model, QRect area, const Palette& palette)
        : m_painter(painter), m_model(model), m_area(area), m_palette(palette), m_axis(model.axis()) {
        m_axis.setWidth(area.width());
        QFont font = painter.font();
        font.setPixelSize(11);
        painter.setFont(font);
    }

    void drawRow(const Row& row, int top) {
        const RankTracks* tracks = row.kind == RowKind::group ? nullptr : m_model.lanes().tracks(row.rank);
        if (row.kind == RowKind::group)
            drawGroup(row, top);
        else if (const ActivityView activity = summaryOf(m_model, row); activity.bins)
            drawSummary(activity, top, row.height);
        else if (tracks && row.lane < tracks->lanes.size() && tracks->lanes[row.lane].kind == LaneKind::counter)
            drawCurveShape(tracks->lanes[row.lane].curve, top, row.height);
        else if (tracks && row.lane < tracks->lanes.size())
            drawLane(row, tracks->lanes[row.lane], top);
    }

  private:
    void fill(double left, double width, double top, double height, Rgb rgb) {
        const QRectF shape = QRectF(left, top, width, height).intersected(QRectF(m_area));
        if (!shape.isEmpty()) m_painter.fillRect(shape, colour(rgb));
    }

    void drawLane(const Row& row, const Lane& lane, int top) {
        std::vector<Rgb> line(static_cast<size_t>(m_area.width()), m_palette.background);
        struct Name {
            QRectF area;
            EventRef event;
        };
        std::vector<Name> names;
        TrackDrawing drawing;
        for (uint32_t part = 0; part < lane.parts.size(); ++part) {
            const Track& track = lane.parts[part].track;
            drawTrack(track, m_axis, drawing);
            paintLine(drawing, track, m_palette.events, line);
            for (const Box& box : drawing.boxes) {
                const double left = std::max(0.0, static_cast<double>(box.x)),
                             right = std::min<double>(box.x + box.width, m_area.width());
                if (right - left >= kMinNameWidth)
                    names.push_back({QRectF(m_area.left() + left, top, right - left, row.height),
                                     {row.rank, row.lane, part, box.event}});
            }
        }
        // Pixels of one colour are one shape.
        for (size_t from = 0; from < line.size();) {
            size_t to = from + 1;
            while (to < line.size() && line[to] == line[from]) ++to;
            if (line[from] != m_palette.background)
                fill(m_area.left() + static_cast<double>(from), static_cast<double>(to - from), top + 1, row.height - 2,
                     line[from]);
            from = to;
        }
        for (const Name& name : names) drawName(name.area, name.event);
    }

    void drawCurveShape(const Curve& curve, int top, int height) {
        std::vector<float> heights;
        drawCurve(curve, m_axis, heights);
        const double inner = height - 4;
        const Rgb shade =
            blend(m_palette.background, m_palette.activities[static_cast<size_t>(Activity::memory)], 0.35f);
        for (size_t from = 0; from < heights.size();) {
            size_t to = from + 1;
            while (to < heights.size() && heights[to] == heights[from]) ++to;
            if (const double tall = inner * static_cast<double>(heights[from]); tall > 0)
                fill(m_area.left() + static_cast<double>(from), static_cast<double>(to - from), top + height - 2 - tall,
                     tall, shade);
            from = to;
        }
    }

    void drawName(QRectF area, EventRef ref) {
        if (area.top() < m_area.top() || area.bottom() > m_area.bottom() + 1) return;
        const TrackEvent event = m_model.event(ref);
        const QFontMetricsF metrics(m_painter.font());
        m_painter.setPen(Palette::ink(m_palette.event(event.kind, event.name)));
        m_painter.drawText(QPointF(area.left() + 4, area.center().y() + metrics.ascent() / 2 - 1),
                           metrics.elidedText(m_model.eventLabel(ref), Qt::ElideRight, area.width() - 6));
    }

    void drawGroup(const Row& row, int top) {
        fill(m_area.left(), m_area.width(), top, row.height, m_palette.header);
        if (row.expanded) return;
        const Overview mean = groupActivity(m_model, row.group, m_axis);
        std::vector<ActivityColumn> columns;
        for (size_t x = 0; x < mean.columns(); ++x) columns.push_back({static_cast<int32_t>(x), mean.column(x)});
        drawStacks(columns, top, row.height);
    }

    void drawSummary(const ActivityView& activity, int top, int height) {
        fill(m_area.left(), m_area.width(), top, height, m_palette.alternate);
        std::vector<ActivityColumn> columns;
        drawActivity(activity, m_axis, columns);
        drawStacks(columns, top, height);
    }

    void drawStacks(const std::vector<ActivityColumn>& columns, int top, int height) {
        const double gap = stackGap(height), inner = height - 2 * gap;
        for (size_t from = 0; from < columns.size();) {
            size_t to = from + 1;
            while (to < columns.size() && columns[to].x == columns[to - 1].x + 1 &&
                   columns[to].shares == columns[from].shares)
                ++to;
            double bottom = top + height - gap;
            for (size_t a = 0; a < kActivities; ++a) {
                const double tall = std::min(1.0, static_cast<double>(columns[from].shares[a])) * inner;
                if (tall > 0)
                    fill(m_area.left() + columns[from].x, static_cast<double>(to - from), bottom - tall, tall,
                         m_palette.activities[a]);
                bottom -= tall;
            }
            from = to;
        }
    }

    QPainter& m_painter;
    const TimelineModel& m_model;
    QRect m_area;
    const Palette& m_palette;
    TimeAxis m_axis;
};

}  // namespace

void drawLaneShapes(QPainter& painter, const TimelineModel& model, const std::vector<Row>& rows, QRect area,
                    int scrollTop, const Palette& palette) {
    painter.save();
    painter.fillRect(area, colour(palette.background));
    LaneShapes shapes(painter, model, area, palette);
    for (const Row& row : rows) {
        const int top = area.top() + row.top - scrollTop;
        if (top + row.height > area.top() && top < area.top() + area.height()) shapes.drawRow(row, top);
    }
    painter.restore();
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/view/lane_canvas.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rankscope::gui {
namespace {

constexpr double kMinNamePixels = 34;                // three letters and an ellipsis
constexpr double kNameIndent = 4, kNameMargins = 6;  // logical pixels: left of a name, and on both sides of it together
constexpr size_t kRowsWorthACrew = 6;

uint64_t stampKey(EventTable table, const TrackEvent& event) {
    return static_cast<uint64_t>(table) << 32 | (table == EventTable::step ? event.row : event.name);
}

}  // namespace

Overview groupActivity(const TimelineModel& model, int64_t group, const TimeAxis& axis) {
    Overview mean(axis.visible(), static_cast<size_t>(axis.width()));
    for (const int32_t rank : model.lanes().ranksOf(group)) mean.add(model.lanes().activity(rank));
    return mean;
}

ActivityView summaryOf(const TimelineModel& model, const Row& row) {
    return row.kind == RowKind::summary ? model.lanes().activity(row.rank) : ActivityView();
}

LaneCanvas::LaneCanvas() : LaneCanvas(std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 8)) {}

const QImage& LaneCanvas::paint(const TimelineModel& model, const std::vector<Row>& rows, int scrollTop, QSize size,
                                double ratio, const Palette& palette) {
    prepare(model, size, ratio, palette);
    placeRows(rows, scrollTop, size.height());
    for (Brush& brush : m_brushes) brush.names.clear();
    forEach(m_rows.size(), [&](size_t worker, size_t item) { paintRow(model, m_rows[item], m_brushes[worker]); });
    const int painted = m_rows.empty() ? 0 : m_rows.back().top + m_rows.back().height;
    fillRows(painted, m_image.height() - painted, palette.background);
    paintNames(model);
    return m_image;
}

void LaneCanvas::prepare(const TimelineModel& model, QSize size, double ratio, const Palette& palette) {
    const QSize pixels(std::max(1, static_cast<int>(std::lround(size.width() * ratio))),
                       std::max(1, static_cast<int>(std::lround(size.height() * ratio))));
    if (m_image.size() != pixels) m_image = QImage(pixels, QImage::Format_RGB32);
    m_image.setDevicePixelRatio(ratio);
    m_pixels = reinterpret_cast<Rgb*>(m_image.bits());
    m_stride = m_image.bytesPerLine() / static_cast<ptrdiff_t>(sizeof(Rgb));
    m_ratio = ratio;
    m_palette = &palette;
    m_axis = model.axis();
    m_axis.setWidth(pixels.width());
    if (m_run != model.sharedRun()) {
        m_run = model.sharedRun();
        m_stamps.clear();
    }
    m_stamps.prepare(ratio);
    m_brushes.resize(m_threads);
    for (Brush& brush : m_brushes) brush.line.resize(static_cast<size_t>(pixels.width()));
}

void LaneCanvas::placeRows(const std::vector<Row>& rows, int scrollTop, int height) {
    m_rows.clear();
    const auto pixel = [&](int y) { return static_cast<int>(std::lround((y - scrollTop) * m_ratio)); };
    auto row = std::partition_point(rows.begin(), rows.end(),
                                    [&](const Row& above) { return above.top + above.height <= scrollTop; });
    for (; row != rows.end() && row->top < scrollTop + height; ++row)
        m_rows.push_back({&*row, pixel(row->top), pixel(row->top + row->height) - pixel(row->top)});
}

void LaneCanvas::forEach(size_t items, const std::function<void(size_t, size_t)>& paint) {
    if (m_threads < 2 || m_rows.size() < kRowsWorthACrew) {
        for (size_t item = 0; item < items; ++item) paint(0, item);
        return;
    }
    if (!m_crew) m_crew = std::make_unique<PaintCrew>(m_threads);
    m_crew->paint(items, paint);
}

void LaneCanvas::paintRow(const TimelineModel& model, const PlacedRow& placed, Brush& brush) {
    const Row& row = *placed.row;
    const RankTracks* tracks = row.kind == RowKind::group ? nullptr : model.lanes().tracks(row.rank);
    if (row.kind == RowKind::group && !row.expanded)
        paintGroup(model, placed, brush);
    else if (const ActivityView activity = summaryOf(model, row); activity.bins)
        paintSummary(placed, activity, brush);
    else if (tracks && row.lane < tracks->lanes.size() && tracks->lanes[row.lane].kind == LaneKind::counter)
        paintCurve(placed, tracks->lanes[row.lane].curve, brush);
    else if (tracks && row.lane < tracks->lanes.size())
        paintLane(placed, tracks->lanes[row.lane], brush);
    else
        fillRows(placed.top, placed.height, row.kind == RowKind::group ? m_palette->header : m_palette->background);
}

void LaneCanvas::fillRows(int top, int height, Rgb colour) {
    const int last = std::min(top + height, m_image.height());
    for (int y = std::max(0, top); y < last; ++y) std::fill_n(pixelLine(y), m_image.width(), colour);
}

void LaneCanvas::paintLane(const PlacedRow& placed, const Lane& lane, Brush& brush) {
    const auto [row, top, height] = placed;
    std::fill(brush.line.begin(), brush.line.end(), m_palette->background);
    for (uint32_t part = 0; part < lane.parts.size(); ++part) {
        const Track& track = lane.parts[part].track;
        drawTrack(track, m_axis, brush.drawing);
        paintLine(brush.drawing, track, m_palette->events, brush.line);
        for (const Box& box : brush.drawing.boxes) {
            const float left = std::max(0.0f, box.x),
                        right = std::min(box.x + box.width, static_cast<float>(m_image.width()));
            if (right - left < kMinNamePixels * m_ratio) continue;
            const TrackEvent event = track.event(box.event);
            brush.names.push_back({stampKey(lane.parts[part].table, event),
                                   {row->rank, row->lane, part, box.event},
                                   inkOn(m_palette->event(event.kind, event.name)),
                                   static_cast<int>(left),
                                   static_cast<int>(right),
                                   top,
                                   height});
        }
    }
    const int gap = std::max(1, static_cast<int>(std::lround(m_ratio)));
    fillRows(top, gap, m_palette->background);
    fillRows(top + height - gap, gap, m_palette->background);
    const int last = std::min(top + height - gap, m_image.height());
    for (int y = std::max(0, top + gap); y < last; ++y)
        std::memcpy(pixelLine(y), brush.line.data(), brush.line.size() * sizeof(Rgb));
}

// The area below the curve, with a line on top of it.
void LaneCanvas::paintCurve(const PlacedRow& placed, const Curve& curve, Brush& brush) {
    fillRows(placed.top, placed.height, m_palette->background);
    drawCurve(curve, m_axis, brush.heights);
    const int gap = std::max(1, static_cast<int>(std::lround(2 * m_ratio)));
    const int inner = placed.height - 2 * gap, bottom = placed.top + gap + inner;
    const Rgb line = m_palette->activities[static_cast<size_t>(Activity::memory)],
              area = blend(m_palette->background, line, 0.35f);
    for (int y = std::max(0, placed.top + gap); y < std::min(bottom, m_image.height()); ++y) {
        Rgb* pixels = pixelLine(y);
        for (size_t x = 0; x < brush.heights.size() && x < static_cast<size_t>(m_image.width()); ++x) {
            if (brush.heights[x] < 0) continue;
            const int top =
                bottom - 1 - static_cast<int>(std::lround(brush.heights[x] * static_cast<float>(inner - 1)));
            if (y >= top) pixels[x] = y == top ? line : area;
        }
    }
}

void LaneCanvas::paintSummary(const PlacedRow& placed, const ActivityView& activity, Brush& brush) {
    drawActivity(activity, m_axis, brush.columns);
    paintStacks(placed, m_palette->alternate, brush);
}

// The mean of the ranks below a line that is collapsed.
void LaneCanvas::paintGroup(const TimelineModel& model, const PlacedRow& placed, Brush& brush) {
    const Overview mean = groupActivity(model, placed.row->group, m_axis);
    brush.columns.clear();
    for (size_t x = 0; x < mean.columns(); ++x) brush.columns.push_back({static_cast<int32_t>(x), mean.column(x)});
    paintStacks(placed, m_palette->header, brush);
}

// Stacks of the activities from the bottom up; what is left above is idle.
void LaneCanvas::paintStacks(const PlacedRow& placed, Rgb background, const Brush& brush) {
    fillRows(placed.top, placed.height, background);
    const int gap = static_cast<int>(std::lround(stackGap(placed.row->height) * m_ratio));
    const int inner = placed.height - 2 * gap;
    for (const ActivityColumn& column : brush.columns) {
        if (column.x < 0 || column.x >= m_image.width()) continue;
        std::array<int, kActivities> upTo{};  // pixels from the bottom
        float sum = 0;
        for (size_t a = 0; a < kActivities; ++a) {
            sum += column.shares[a];
            upTo[a] = static_cast<int>(std::min(1.0f, sum) * static_cast<float>(inner) + 0.5f);
        }
        if (sum > 0 && upTo.back() == 0 && gap > 0) upTo.back() = 1;
        const int bottom = placed.top + gap + inner;
        int below = std::min(bottom, m_image.height());  // the pixel above which the next one begins
        for (size_t a = 0; a < kActivities; ++a) {
            const int top = std::max(0, bottom - upTo[a]);
            for (int y = top; y < below; ++y) pixelLine(y)[column.x] = m_palette->activities[a];
            below = std::min(below, top);
        }
    }
}

// Stamps are made on this thread, since Qt's fonts are not for several; pressed on all.
void LaneCanvas::paintNames(const TimelineModel& model) {
    for (const Brush& brush : m_brushes)
        for (const PlacedName& name : brush.names)
            if (!m_stamps.find(name.key)) m_stamps.add(name.key, model.eventLabel(name.event));
    forEach(m_brushes.size(), [&](size_t, size_t item) {
        for (const PlacedName& name : m_brushes[item].names) pressName(name);
    });
}

void LaneCanvas::pressName(const PlacedName& name) {
    const NameStamp& stamp = *m_stamps.find(name.key);
    const int left = name.left + static_cast<int>(kNameIndent * m_ratio);
    const int shown =
        stamp.fitting(name.right - name.left - static_cast<int>(kNameMargins * m_ratio), m_stamps.ellipsis());
    if (shown == 0) return;
    const auto press = [&](const NameStamp& pressed, int x, int width) {
        const int top = name.top + (name.height - pressed.height()) / 2;
        for (int y = std::max({0, name.top, top});
             y < std::min({m_image.height(), name.top + name.height, top + pressed.height()}); ++y) {
            Rgb* line = pixelLine(y) + x;
            for (const NameStamp::Dot& dot : pressed.row(y - top)) {
                if (dot.x >= width) break;
                line[dot.x] = blend(line[dot.x], name.ink, static_cast<float>(dot.alpha) / 255.0f);
            }
        }
    };
    press(stamp, left, shown);
    if (shown < stamp.width()) press(m_stamps.ellipsis(), left + shown, m_stamps.ellipsis().width());
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/view/lane_canvas.h"

#include <QFontMetricsF>
#include <algorithm>
#include <cmath>
#include <cstring>

namespace rankscope::gui {
namespace {

constexpr double kMinLabelPixels = 34;    // three letters and an ellipsis
constexpr size_t kMaxLabels = 1500;       // what a frame has time for; the widest are kept

}  // namespace

const QImage& LaneCanvas::paint(const TimelineModel& model, const std::vector<Row>& rows, int scrollTop, QSize size, double ratio, const Palette& palette) {
    const QSize pixels(std::max(1, static_cast<int>(std::lround(size.width() * ratio))), std::max(1, static_cast<int>(std::lround(size.height() * ratio))));
    if (m_image.size() != pixels) m_image = QImage(pixels, QImage::Format_RGB32);
    m_image.setDevicePixelRatio(ratio);
    m_ratio = ratio;
    m_palette = &palette;
    m_axis = model.axis();
    m_axis.setWidth(pixels.width());
    m_line.resize(static_cast<size_t>(pixels.width()));
    m_labels.clear();
    int painted = 0;   // rows above it hold their pixels: each is written once

    const auto first = std::partition_point(rows.begin(), rows.end(), [&](const Row& row) { return row.top + row.height <= scrollTop; });
    for (auto row = first; row != rows.end() && row->top < scrollTop + size.height(); ++row) {
        const int top = static_cast<int>(std::lround((row->top - scrollTop) * ratio));
        const int height = static_cast<int>(std::lround((row->top + row->height - scrollTop) * ratio)) - top;
        painted = top + height;
        if (row->kind == RowKind::host) {
            fillRows(top, height, palette.header);
            continue;
        }
        const RankTracks* tracks = model.lanes().tracks(row->rank);
        if (tracks && row->kind == RowKind::summary)
            paintSummary(*tracks, top, height);
        else if (tracks && row->lane < tracks->lanes.size())
            paintLane(*row, tracks->lanes[row->lane], top, height);
        else
            fillRows(top, height, palette.background);
    }
    fillRows(painted, pixels.height() - painted, palette.background);
    paintNames(model);
    return m_image;
}

void LaneCanvas::fillRows(int top, int height, Rgb colour) {
    const int last = std::min(top + height, m_image.height());
    for (int y = std::max(0, top); y < last; ++y) std::fill_n(pixelLine(y), m_image.width(), colour);
}

void LaneCanvas::paintLane(const Row& row, const Lane& lane, int top, int height) {
    std::fill(m_line.begin(), m_line.end(), m_palette->background);
    for (uint32_t part = 0; part < lane.parts.size(); ++part) {
        const Track& track = lane.parts[part].track;
        drawTrack(track, m_axis, m_drawing);
        paintLine(m_drawing, track, m_palette->events, m_line);
        for (const Box& box : m_drawing.boxes) {
            const double left = std::max(0.0, box.x / m_ratio), right = std::min((box.x + box.width) / m_ratio, m_image.width() / m_ratio);
            if (right - left >= kMinLabelPixels)
                m_labels.push_back({QRectF(left, top / m_ratio, right - left, height / m_ratio), {row.rank, row.lane, part, box.event}});
        }
    }
    const int gap = std::max(1, static_cast<int>(std::lround(m_ratio)));
    fillRows(top, gap, m_palette->background);
    fillRows(top + height - gap, gap, m_palette->background);
    const int last = std::min(top + height - gap, m_image.height());
    for (int y = std::max(0, top + gap); y < last; ++y) std::memcpy(pixelLine(y), m_line.data(), m_line.size() * sizeof(Rgb));
}

// A stack of compute, overlapped, exposed and memory from the bottom up; what is left above is idle.
void LaneCanvas::paintSummary(const RankTracks& tracks, int top, int height) {
    fillRows(top, height, m_palette->alternate);
    const auto device = tracks.deviceTracks();
    drawActivity(tracks.activity, device, m_axis, m_columns);
    const int gap = std::max(1, static_cast<int>(std::lround(2 * m_ratio)));
    const int inner = height - 2 * gap;
    // Heights are counted in pixels from the bottom, so that rows can be painted one after the other.
    struct Stack {
        int32_t x;
        std::array<int, kActivities> upTo;
    };
    std::vector<Stack> stacks;
    stacks.reserve(m_columns.size());
    for (const ActivityColumn& column : m_columns) {
        Stack stack{column.x, {}};
        float sum = 0;
        for (size_t a = 0; a < kActivities; ++a) {
            sum += column.shares[a];
            stack.upTo[a] = static_cast<int>(std::lround(std::min(1.0f, sum) * static_cast<float>(inner)));
        }
        if (sum > 0 && stack.upTo[kActivities - 1] == 0) stack.upTo[kActivities - 1] = 1;
        if (column.x >= 0 && column.x < m_image.width()) stacks.push_back(stack);
    }
    for (int fromBottom = 0; fromBottom < inner; ++fromBottom) {
        const int y = top + gap + inner - 1 - fromBottom;
        if (y < 0 || y >= m_image.height()) continue;
        Rgb* line = pixelLine(y);
        for (const Stack& stack : stacks) {
            if (fromBottom >= stack.upTo[kActivities - 1]) continue;
            size_t a = 0;
            while (fromBottom >= stack.upTo[a]) ++a;
            line[stack.x] = m_palette->activities[a];
        }
    }
}

void LaneCanvas::paintNames(const TimelineModel& model) {
    if (m_labels.size() > kMaxLabels) {
        std::nth_element(m_labels.begin(), m_labels.begin() + kMaxLabels, m_labels.end(),
                         [](const EventLabel& a, const EventLabel& b) { return a.area.width() > b.area.width(); });
        m_labels.resize(kMaxLabels);
    }
    QPainter painter(&m_image);
    QFont font = painter.font();
    font.setPixelSize(11);
    painter.setFont(font);
    const QFontMetricsF metrics(font);
    const double letter = metrics.averageCharWidth();
    for (const EventLabel& label : m_labels) {
        const QString name = model.eventName(label.event);
        const auto room = static_cast<qsizetype>((label.area.width() - 6) / letter);
        if (room < 3 || name.isEmpty()) continue;
        const TrackEvent event = model.event(label.event);
        painter.setPen(Palette::ink(m_palette->event(event.kind, event.name)));
        const QString shown = name.size() <= room ? name : name.left(room - 1) + QChar(0x2026);
        painter.drawText(QPointF(label.area.left() + 4, label.area.center().y() + metrics.ascent() / 2 - 1), shown);
    }
}

}  // namespace rankscope::gui

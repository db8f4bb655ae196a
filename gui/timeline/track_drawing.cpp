// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/track_drawing.h"

#include <algorithm>

namespace rankscope::gui {
namespace {

// Walks the pyramid from its top. A node of two pixels or less is painted as specks without looking below it: with four events a node that bounds the
// work at two events a pixel, and blurs what lies closer together than an eye sees.
constexpr double kSpeckPixels = 2;

class TrackPainter {
public:
    TrackPainter(const Track& track, const TimeAxis& axis, TrackDrawing& drawing)
        : m_track(track), m_visible(axis.visible()), m_scale(axis.pixelsPerNs()), m_width(axis.width()), m_drawing(drawing) {}

    void paint() {
        if (m_track.levels() == 0) {
            paintEvents(0, m_track.size());
        } else {
            paintNodes(m_track.levels() - 1, 0, m_track.level(m_track.levels() - 1).size());
        }
    }

private:
    void paintNodes(size_t level, size_t first, size_t last) {
        const auto nodes = m_track.level(level);
        last = std::min(last, nodes.size());
        for (size_t i = first; i < last; ++i) {
            const PyramidNode& node = nodes[i];
            if (node.endNs < m_visible.beginNs) continue;
            if (node.startNs >= m_visible.endNs) return;
            if (static_cast<double>(node.endNs - node.startNs) * m_scale <= kSpeckPixels) {
                speck(node.startNs, node.endNs, node.busyNs, node.longestNs, node.style);
            } else if (level == 0) {
                paintEvents(i * Track::kFan, (i + 1) * Track::kFan);
            } else {
                paintNodes(level - 1, i * Track::kFan, (i + 1) * Track::kFan);
            }
        }
    }

    void paintEvents(size_t first, size_t last) {
        last = std::min(last, m_track.size());
        for (size_t i = first; i < last; ++i) {
            const int64_t start = m_track.startNs(i);
            if (start >= m_visible.endNs) return;
            const int64_t end = m_track.endNs(i);
            if (end < m_visible.beginNs) continue;
            const double width = static_cast<double>(end - start) * m_scale;
            if (width < kMinBoxPixels) {
                speck(start, end, end - start, static_cast<uint32_t>(end - start), m_track.style(i));  // far less than 4.29 s, or it were a box
            } else {
                const double left = std::max(xOf(start), -1.0);  // far outside the picture floats lose pixels
                const double right = std::min(xOf(end), m_width + 1);
                m_drawing.boxes.push_back({static_cast<float>(left), static_cast<float>(right - left), static_cast<uint32_t>(i)});
            }
        }
    }

    // Spreads `busyNs` evenly over the columns that [startNs, endNs) touches: four at most.
    void speck(int64_t startNs, int64_t endNs, int64_t busyNs, uint32_t longestNs, uint32_t style) {
        const double left = xOf(startNs), right = xOf(endNs);
        const int32_t firstColumn = columnOf(left), lastColumn = columnOf(right);
        const double busyPixels = static_cast<double>(busyNs) * m_scale;
        if (firstColumn == lastColumn || right <= left) {
            addToColumn(firstColumn, busyPixels, longestNs, style);
            return;
        }
        const double density = busyPixels / (right - left);
        for (int32_t column = firstColumn; column <= lastColumn; ++column) {
            const double share = std::min<double>(right, column + 1) - std::max<double>(left, column);
            if (share > 0) addToColumn(column, density * share, longestNs, style);
        }
    }

    void addToColumn(int32_t column, double coverage, uint32_t longestNs, uint32_t style) {
        if (static_cast<uint32_t>(column) >= m_drawing.columns.size()) return;
        Speck& speck = m_drawing.columns[static_cast<size_t>(column)];
        if (speck.x < 0 || longestNs > speck.longestNs) {
            speck.x = column;
            speck.longestNs = longestNs;
            speck.style = style;
        }
        speck.coverage += static_cast<float>(coverage);
    }

    // floor(), without a call into the mathematics library for each of many thousand events.
    static int32_t columnOf(double x) {
        const auto column = static_cast<int32_t>(x);
        return column - (x < column);
    }

    double xOf(int64_t ns) const { return static_cast<double>(ns - m_visible.beginNs) * m_scale; }

    const Track& m_track;
    TimeRange m_visible;
    double m_scale;
    double m_width;
    TrackDrawing& m_drawing;
};

}  // namespace

void drawTrack(const Track& track, const TimeAxis& axis, TrackDrawing& drawing) {
    drawing.boxes.clear();
    drawing.specks.clear();
    drawing.columns.assign(static_cast<size_t>(axis.width()), Speck{-1, 0, 0, 0});
    if (track.empty()) return;
    TrackPainter(track, axis, drawing).paint();
    for (Speck& speck : drawing.columns) {
        if (speck.x < 0) continue;
        speck.coverage = std::min(1.0f, speck.coverage);
        drawing.specks.push_back(speck);
    }
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/track_drawing.h"

#include <algorithm>
#include <cmath>

namespace rankscope::gui {
namespace {

// Walks the pyramid from its top. A node that fits in a pixel is painted as a speck without looking below it.
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
            if (static_cast<double>(node.endNs - node.startNs) * m_scale <= 1) {
                speck(node.startNs, node.endNs, node.busyNs, node.longest);
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
                speck(start, end, end - start, static_cast<uint32_t>(i));
            } else {
                const double left = std::max(xOf(start), -1.0);  // far outside the picture floats lose pixels
                const double right = std::min(xOf(end), m_width + 1);
                m_drawing.boxes.push_back({static_cast<float>(left), static_cast<float>(right - left), static_cast<uint32_t>(i)});
            }
        }
    }

    // Spreads `busyNs` evenly over the columns that [startNs, endNs) touches: three at most.
    void speck(int64_t startNs, int64_t endNs, int64_t busyNs, uint32_t event) {
        const double left = xOf(startNs), right = xOf(endNs);
        const auto firstColumn = static_cast<int32_t>(std::floor(left)), lastColumn = static_cast<int32_t>(std::floor(right));
        const double busyPixels = static_cast<double>(busyNs) * m_scale;
        if (firstColumn == lastColumn || right <= left) {
            addToColumn(firstColumn, busyPixels, event);
            return;
        }
        const double density = busyPixels / (right - left);
        for (int32_t column = firstColumn; column <= lastColumn; ++column) {
            const double share = std::min<double>(right, column + 1) - std::max<double>(left, column);
            if (share > 0) addToColumn(column, density * share, event);
        }
    }

    void addToColumn(int32_t column, double coverage, uint32_t event) {
        if (column < 0 || column >= m_width) return;
        std::vector<Speck>& specks = m_drawing.specks;
        if (specks.empty() || specks.back().x != column) {
            specks.push_back({column, static_cast<float>(coverage), event});
            return;
        }
        Speck& speck = specks.back();
        speck.coverage = std::min(1.0f, speck.coverage + static_cast<float>(coverage));
        if (m_track.durNs(event) > m_track.durNs(speck.event)) speck.event = event;
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
    drawing.clear();
    if (!track.empty()) TrackPainter(track, axis, drawing).paint();
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/track_drawing.h"

#include <algorithm>

namespace rankscope::gui {
namespace {

// Walks the pyramid from its top. A node of two pixels or less is painted as specks without looking below it: with four
// events a node that bounds the work at two events a pixel, and blurs what lies closer together than an eye sees.
constexpr double kSpeckPixels = 2;

// A frame looks at some hundred thousand nodes and events, in lines of memory that were not looked at for long: waiting
// for them is most of its cost. So the pyramid is walked level by level, which tells what will be needed well before it
// is.
constexpr size_t kAhead = 8;

// What SpeckColumn::longest holds of an event.
uint64_t longestEvent(int64_t durNs, uint32_t style) {
    return static_cast<uint64_t>(std::min<int64_t>(durNs, UINT32_MAX - 1) + 1) << 32 | style;
}

uint64_t longestOf(const PyramidNode& node) {
    return longestEvent(node.longestNs, node.longestStyle);
}

// The inner loops see events and nodes of lengths that no branch predictor knows: what can be said without an if is.
class TrackPainter {
  public:
    TrackPainter(const Track& track, const TimeAxis& axis, TrackDrawing& drawing)
        : m_track(track),
          m_visible(axis.visible()),
          m_scale(axis.pixelsPerNs()),
          m_width(axis.width()),
          m_drawing(drawing),
          m_columns(drawing.columns.data()) {}

    void paint() {
        size_t level = m_track.levels();
        if (level == 0) {
            paintEvents(0, m_track.size());
            return;
        }
        std::vector<uint32_t>&groups = m_drawing.groups, &below = m_drawing.groupsBelow;
        groups.clear();
        for (uint32_t group = 0; group * Track::kFan < m_track.level(level - 1).size(); ++group)
            groups.push_back(group);
        while (level-- > 0) {
            const auto nodes = m_track.level(level);
            below.clear();
            for (size_t i = 0; i < groups.size(); ++i) {
                if (i + kAhead < groups.size())
                    prefetch(&nodes[groups[i + kAhead] * Track::kFan], Track::kFan * sizeof(PyramidNode));
                paintNodes(level, groups[i] * size_t{Track::kFan}, below);
            }
            std::swap(groups, below);
        }
        for (size_t i = 0; i < groups.size(); ++i) {
            if (i + kAhead < groups.size()) m_track.prefetch(groups[i + kAhead] * size_t{Track::kFan}, Track::kFan);
            paintEvents(groups[i] * size_t{Track::kFan}, (groups[i] + 1) * size_t{Track::kFan});
        }
    }

  private:
    // Paints a group of siblings, and notes which of them must be looked into.
    void paintNodes(size_t level, size_t first, std::vector<uint32_t>& below) {
        const auto nodes = m_track.level(level);
        const size_t last = std::min(nodes.size(), first + Track::kFan);
        const bool isInside = nodes[first].startNs >= m_visible.beginNs && nodes[last - 1].endNs() <= m_visible.endNs;
        for (size_t i = first; i < last; ++i) {
            const PyramidNode& node = nodes[i];
            if (!isInside && (node.startNs >= m_visible.endNs || isBefore(node.startNs, node.endNs()))) continue;
            const double width = static_cast<double>(node.spanNs) * m_scale;
            if (width <= kSpeckPixels)
                speck(xOf(node.startNs), width, node.busy, node.waiting, longestOf(node));
            else if (isInside && width - static_cast<double>(node.longestNs) * m_scale <= kSpeckPixels &&
                     node.longestNs != PyramidNode::kWideNs && level < PyramidNode::kPlacedLevels)
                paintAroundLongest(node, i * eventsBelow(level), (i + 1) * eventsBelow(level));
            else
                below.push_back(static_cast<uint32_t>(i));
        }
    }

    static size_t eventsBelow(size_t level) { return size_t{Track::kFan} << 2 * level; }

    // A node of the events [first, last) that is one long event, but for what is too little to look into: that is
    // painted as specks before and behind it.
    void paintAroundLongest(const PyramidNode& node, size_t first, size_t last) {
        last = std::min(last, m_track.size());
        const size_t longest = first + node.longest;
        const int64_t waitNs = node.waiting > 0 ? m_track.waitNs(longest) : 0;
        const auto spanNs = static_cast<double>(node.spanNs), longestNs = static_cast<double>(node.longestNs);
        const double left = xOf(node.startNs), width = longestNs * m_scale, restNs = std::max(0.0, spanNs - longestNs);
        // A box stands where a selection of its event does; of a speck the node knows well enough where it is.
        const double before = width >= kMinBoxPixels ? xOf(m_track.startNs(longest)) - left
                                                     : std::min(restNs, spanNs * node.longestAt / 65'535) * m_scale;
        paintEvent(longest, left + before, width, static_cast<double>(waitNs) * m_scale, longestOf(node));
        if (restNs == 0) return;
        const auto densityOfRest = [&](float share, double without) {
            return static_cast<float>(std::max(0.0, (spanNs * static_cast<double>(share) - without) / restNs));
        };
        const float busy = densityOfRest(node.busy, longestNs),
                    waiting = densityOfRest(node.waiting, static_cast<double>(waitNs));
        // Nobody knows the longest of the rest: other specks in its columns have the choice of the colour.
        const uint64_t unknown = longestEvent(0, node.longestStyle);
        if (longest > first) speck(left, before, busy, waiting, unknown);
        if (longest + 1 < last)
            speck(left + before + width, std::max(0.0, restNs * m_scale - before), busy, waiting, unknown);
    }

    void paintEvents(size_t first, size_t last) {
        last = std::min(last, m_track.size());
        for (size_t i = first; i < last; ++i) {
            const int64_t start = m_track.startNs(i), duration = m_track.durNs(i);
            if (start >= m_visible.endNs || isBefore(start, start + duration)) continue;
            paintEvent(i, xOf(start), static_cast<double>(duration) * m_scale,
                       static_cast<double>(m_track.waitNs(i)) * m_scale, longestEvent(duration, m_track.style(i)));
        }
    }

    // Columns from `begin` on, `width` wide, of which the first `wait` wait.
    void paintEvent(size_t event, double begin, double width, double wait, uint64_t longest) {
        if (width < kMinBoxPixels) {
            speck(begin, width, 1, 0, longest);
        } else {
            const double left = std::max(begin, -1.0);  // far outside the picture floats lose pixels
            const double right = std::min(begin + width, m_width + 1);
            const double waiting = wait < kMinBoxPixels ? 0 : std::max(std::min(begin + wait, m_width + 1) - left, 0.0);
            m_drawing.boxes.push_back({static_cast<float>(left), static_cast<float>(right - left),
                                       static_cast<float>(waiting), static_cast<uint32_t>(event)});
        }
        if (wait > 0 && wait < kMinBoxPixels && begin + wait > 0) speck(begin, wait, 0, 1, 0);
    }

    // Covers the columns from `begin` on, `width` wide, four at most, to `density`, and to `waiting` with waits. A
    // longest event of 0 is none.
    void speck(double begin, double width, float density, float waiting, uint64_t longest) {
        const double left = std::max(begin, 0.0), right = std::max(left, std::min(begin + width, m_width));
        auto column = static_cast<int32_t>(left);  // unsigned ones are slow to convert
        double from = left;
        for (; right - static_cast<double>(column) > 2; ++column) {
            cover(column, static_cast<double>(column + 1) - from, density, waiting, longest);
            from = static_cast<double>(column + 1);
        }
        const double edge = std::min(right, static_cast<double>(column + 1));
        cover(column, edge - from, density, waiting, longest);
        cover(column + 1, right - edge, density, waiting, right > edge ? longest : 0);
    }

    void cover(int32_t column, double width, float density, float waiting, uint64_t longest) {
        SpeckColumn& covered = m_columns[column];
        covered.coverage += static_cast<float>(width) * density;
        covered.waiting += static_cast<float>(width) * waiting;
        covered.longest = std::max(covered.longest, longest);
    }

    // What ends where the picture begins is not in it, but for an event without length.
    bool isBefore(int64_t startNs, int64_t endNs) const {
        return startNs < m_visible.beginNs && endNs <= m_visible.beginNs;
    }

    double xOf(int64_t ns) const { return static_cast<double>(ns - m_visible.beginNs) * m_scale; }

    const Track& m_track;
    TimeRange m_visible;
    double m_scale;
    double m_width;
    TrackDrawing& m_drawing;
    SpeckColumn* m_columns;
};

}  // namespace

void drawTrack(const Track& track, const TimeAxis& axis, TrackDrawing& drawing) {
    drawing.boxes.clear();
    drawing.specks.clear();
    drawing.waits.clear();
    const auto width = static_cast<size_t>(axis.width());
    drawing.columns.resize(width + 3);  // the last ones catch what sticks out on the right
    if (track.empty()) return;
    TrackPainter(track, axis, drawing).paint();
    std::ranges::sort(drawing.boxes, {}, &Box::event);  // those of nodes come before those below the nodes
    for (size_t x = 0; x < drawing.columns.size(); ++x) {
        SpeckColumn& column = drawing.columns[x];
        if (column.longest == 0 && column.waiting == 0) continue;
        if (x < width && column.longest != 0)
            drawing.specks.push_back(
                {static_cast<int32_t>(x), std::min(1.0f, column.coverage), static_cast<uint32_t>(column.longest)});
        if (x < width && column.waiting > 0)
            drawing.waits.push_back({static_cast<int32_t>(x), std::min(1.0f, column.waiting)});
        column = {};
    }
}

}  // namespace rankscope::gui

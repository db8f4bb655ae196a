// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/track.h"

#include <algorithm>
#include <cmath>

#include "gui/timeline/sound_time.h"

namespace rankscope::gui {
namespace {

constexpr size_t kTopNodes = 8;  // a level this small needs none above it

void setShares(PyramidNode& node, int64_t endNs, double busyNs, double waitingNs) {
    const auto spanNs = static_cast<double>(endNs - node.startNs);
    node.busy = spanNs > 0 ? static_cast<float>(busyNs / spanNs) : 0;
    node.waiting = spanNs > 0 ? static_cast<float>(waitingNs / spanNs) : 0;
    node.spanNs = static_cast<float>(spanNs);
    // Rounded up: what is at its end is found.
    if (static_cast<double>(node.spanNs) < spanNs) node.spanNs = std::nextafter(node.spanNs, INFINITY);
}

uint16_t placeIn(const PyramidNode& node, int64_t startNs) {
    if (node.spanNs <= 0) return 0;
    const double share = static_cast<double>(startNs - node.startNs) / static_cast<double>(node.spanNs);
    return static_cast<uint16_t>(std::lround(65'535 * std::clamp(share, 0.0, 1.0)));
}

}  // namespace

void Track::add(const TrackEvent& event) {
    int64_t start = event.startNs;
    int64_t duration = std::max<int64_t>(event.durNs, 0);
    if (!empty()) {
        const int64_t free = endNs(size() - 1);
        if (start < free) {
            duration = std::max<int64_t>(0, start + duration - free);
            start = free;
        }
    }
    if (duration >= kWide) m_wide.emplace_back(static_cast<uint32_t>(size()), duration);
    m_events.push_back({start, duration >= kWide ? kWide : static_cast<uint32_t>(duration),
                        std::min(event.name, kMaxName) | static_cast<uint32_t>(event.kind) << 28});
    m_rows.push_back(event.row);
    if (event.waitNs > 0) m_waits.resize(m_events.size() - 1);
    if (event.waitNs > 0 || !m_waits.empty()) m_waits.push_back(std::clamp<int64_t>(event.waitNs, 0, duration));
}

void Track::finish() {
    m_events.shrink_to_fit();
    m_rows.shrink_to_fit();
    m_waits.shrink_to_fit();
    m_levels.clear();
    if (size() <= kTopNodes) return;

    std::vector<PyramidNode> lowest;
    lowest.reserve(size() / kFan + 1);
    for (size_t first = 0; first < size(); first += kFan) {
        const size_t last = std::min(size(), first + kFan);
        size_t longest = first;
        int64_t busyNs = 0, waitingNs = 0;
        for (size_t i = first; i < last; ++i) {
            busyNs += durNs(i);
            waitingNs += waitNs(i);
            if (m_events[i].durNs > m_events[longest].durNs) longest = i;
        }
        PyramidNode node{startNs(first)};
        node.longestNs = m_events[longest].durNs;
        node.longestStyle = style(longest);
        node.longest = static_cast<uint16_t>(longest - first);
        setShares(node, endNs(last - 1), static_cast<double>(busyNs), static_cast<double>(waitingNs));
        node.longestAt = placeIn(node, startNs(longest));
        lowest.push_back(node);
    }
    m_levels.push_back(std::move(lowest));
    size_t events = kFan;  // below a node of the last level
    while (m_levels.back().size() > kTopNodes) {
        const std::vector<PyramidNode>& below = m_levels.back();
        std::vector<PyramidNode> nodes;
        nodes.reserve(below.size() / kFan + 1);
        for (size_t first = 0; first < below.size(); first += kFan) {
            const size_t last = std::min(below.size(), first + kFan);
            PyramidNode node{below[first].startNs};
            size_t longest = first;
            double busyNs = 0, waitingNs = 0;
            for (size_t i = first; i < last; ++i) {
                const auto spanNs = static_cast<double>(below[i].spanNs);
                busyNs += spanNs * static_cast<double>(below[i].busy);
                waitingNs += spanNs * static_cast<double>(below[i].waiting);
                if (below[i].longestNs > below[longest].longestNs) longest = i;
            }
            node.longestNs = below[longest].longestNs;
            node.longestStyle = below[longest].longestStyle;
            setShares(node, endNs(std::min(size(), last * events) - 1), busyNs, waitingNs);
            if (m_levels.size() < PyramidNode::kPlacedLevels) {
                node.longest = static_cast<uint16_t>((longest - first) * events + below[longest].longest);
                node.longestAt = placeIn(node, startNs(first * events + node.longest));
            }
            nodes.push_back(node);
        }
        events *= kFan;
        m_levels.push_back(std::move(nodes));
    }
}

TrackEvent Track::event(size_t index) const noexcept {
    return {startNs(index), durNs(index), name(index), m_rows[index], kind(index), waitNs(index)};
}

int64_t Track::wideDurNs(size_t index) const noexcept {
    const auto wide =
        std::lower_bound(m_wide.begin(), m_wide.end(), std::pair<uint32_t, int64_t>(static_cast<uint32_t>(index), 0));
    return wide->second;
}

size_t Track::findRow(int64_t rowId) const noexcept {
    const uint64_t offset = static_cast<uint64_t>(rowId) - static_cast<uint64_t>(m_firstRow);
    if (rowId < m_firstRow || offset > UINT32_MAX) return size();
    const auto row = static_cast<uint32_t>(offset);
    const auto found = std::lower_bound(m_rows.begin(), m_rows.end(), row);
    return found != m_rows.end() && *found == row ? static_cast<size_t>(found - m_rows.begin()) : size();
}

size_t Track::firstStartingAfter(int64_t ns) const noexcept {
    return static_cast<size_t>(std::upper_bound(m_events.begin(), m_events.end(), ns,
                                                [](int64_t time, const Drawn& event) { return time < event.startNs; }) -
                               m_events.begin());
}

size_t Track::firstEndingAfter(int64_t ns) const noexcept {
    // Events lie side by side: only the last one that starts at or before `ns` can still be running.
    const size_t after = firstStartingAfter(ns);
    return after > 0 && endNs(after - 1) > ns ? after - 1 : after;
}

TimeRange Track::extent() const noexcept {
    return empty() ? TimeRange{} : TimeRange{startNs(0), endNs(size() - 1)};
}

size_t Track::bytes() const noexcept {
    size_t bytes = size() * (sizeof(Drawn) + sizeof(uint32_t)) + m_wide.size() * sizeof(m_wide[0]) +
                   m_waits.size() * sizeof(m_waits[0]);
    for (const auto& level : m_levels) bytes += level.size() * sizeof(PyramidNode);
    return bytes;
}

void TrackStack::add(TrackEvent event) {
    const TimeRange range = soundStretch(event.startNs, event.durNs);
    event.startNs = range.beginNs;
    event.durNs = range.span();
    for (size_t depth = 0; depth < m_ends.size(); ++depth) {
        if (m_ends[depth] > event.startNs) continue;
        m_tracks[depth].add(event);
        m_ends[depth] = event.startNs + event.durNs;
        return;
    }
    if (m_tracks.size() >= m_maxDepth) {
        m_leftOut.push_back(event);
        return;
    }
    m_tracks.emplace_back(m_firstRow).add(event);
    m_ends.push_back(event.startNs + event.durNs);
}

std::vector<Track> TrackStack::finish() {
    for (Track& track : m_tracks) track.finish();
    return std::move(m_tracks);
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gui/timeline/time_axis.h"

namespace rankscope::gui {

/// What an event is; decides its colour family.
/// `waiting` is only a colour: of the beginning of a communication kernel, in which it waits for other ranks
/// (TrackEvent::waitNs). `idle` is named by its cause.
enum class EventKind : uint8_t {
    compute,
    communication,
    copy,
    set,
    nvtx,
    api,
    blockingCall,
    allocation,
    step,
    other,
    waiting,
    idle
};
inline constexpr size_t kEventKinds = 12;

/// A walk over events looks whether it is cancelled each time that it has seen so many.
inline constexpr size_t kEventsBetweenChecks = 1 << 16;

struct TrackEvent {
    int64_t startNs = 0;
    int64_t durNs = 0;
    uint32_t name = 0;  ///< string id of trace.db; at most Track::kMaxName
    uint32_t row = 0;   ///< row id counted from the first row of its track
    EventKind kind = EventKind::other;
    int64_t waitNs = 0;  ///< how long it waits for other ranks, from its start; 0 where that is unknown
};

inline void prefetch(const void* memory, size_t bytes) noexcept {
    for (size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(static_cast<const char*>(memory) + offset);
}

/// A stretch of consecutive events (or of nodes of the level below), for drawing what is too small to be drawn one by
/// one.
struct PyramidNode {
    int64_t startNs = 0;
    float spanNs = 0;           ///< up to the end of the last event, or a little more
    float busy = 0;             ///< the durations' share of its time, 0..1
    float waiting = 0;          ///< the share in which they wait for other ranks
    uint32_t longestNs = 0;     ///< of its longest event, which gives the colour; kWideNs where that lasts longer
    uint32_t longestStyle = 0;  ///< Track::style() of that event. Kept here, because a look at it would miss the cache
    uint16_t longest = 0;       ///< its place among the events of the node, of levels below kPlacedLevels
    uint16_t longestAt = 0;     ///< where it begins, of 65,535ths of the span

    static constexpr uint32_t kWideNs = UINT32_MAX;  ///< 4.29 s
    static constexpr size_t kPlacedLevels = 8;       ///< four events at the lowest, 65,536 at the last
    int64_t endNs() const noexcept { return startNs + static_cast<int64_t>(spanNs); }
};
static_assert(sizeof(PyramidNode) == 32);

/// Events of one lane, side by side in time order, with a level-of-detail pyramid over them. Immutable once finished,
/// so any thread may read it. 20 bytes an event, 28 where any of them waits; the pyramid adds 11.
class Track {
  public:
    static constexpr uint32_t kFan = 4;  ///< events below a node of the lowest level, nodes below one of a higher level
    static constexpr uint32_t kMaxName = (1u << 28) - 1;

    Track() = default;
    explicit Track(int64_t firstRow) : m_firstRow(firstRow) {}

    /// In order of start; an event that begins before the last one ends is cut where that ends, so that lanes stay
    /// searchable. None waits longer than it lasts.
    void add(const TrackEvent& event);
    /// Builds the pyramid; nothing may be added after.
    void finish();

    size_t size() const noexcept { return m_events.size(); }
    bool empty() const noexcept { return m_events.empty(); }
    TrackEvent event(size_t index) const noexcept;
    int64_t startNs(size_t index) const noexcept { return m_events[index].startNs; }
    int64_t durNs(size_t index) const noexcept {
        return m_events[index].durNs != kWide ? m_events[index].durNs : wideDurNs(index);
    }
    int64_t endNs(size_t index) const noexcept { return startNs(index) + durNs(index); }
    int64_t waitNs(size_t index) const noexcept { return m_waits.empty() ? 0 : m_waits[index]; }
    uint32_t name(size_t index) const noexcept { return nameOf(style(index)); }
    EventKind kind(size_t index) const noexcept { return kindOf(style(index)); }
    /// Name and kind in one number.
    uint32_t style(size_t index) const noexcept { return m_events[index].style; }
    static uint32_t nameOf(uint32_t style) noexcept { return style & kMaxName; }
    static EventKind kindOf(uint32_t style) noexcept { return static_cast<EventKind>(style >> 28); }
    /// Fetches events into the processor's cache; they are looked at soon.
    void prefetch(size_t first, size_t count) const noexcept { gui::prefetch(&m_events[first], count * sizeof(Drawn)); }
    int64_t rowId(size_t index) const noexcept { return m_firstRow + m_rows[index]; }
    /// Index of the event with this row id, or size(). Rows grow with time.
    size_t findRow(int64_t rowId) const noexcept;

    /// First event that ends after `ns`, or size().
    size_t firstEndingAfter(int64_t ns) const noexcept;
    TimeRange extent() const noexcept;

    size_t levels() const noexcept { return m_levels.size(); }
    /// Level 0 covers kFan events a node.
    std::span<const PyramidNode> level(size_t level) const noexcept { return m_levels[level]; }
    /// Memory held, in bytes.
    size_t bytes() const noexcept;

  private:
    static constexpr uint32_t kWide = PyramidNode::kWideNs;
    // What drawing looks at, side by side: a column for each would be as many cache misses.
    struct Drawn {
        int64_t startNs;
        uint32_t durNs;  // kWide: in m_wide
        uint32_t style;  // kind in the upper four bits
    };
    int64_t wideDurNs(size_t index) const noexcept;
    size_t firstStartingAfter(int64_t ns) const noexcept;

    int64_t m_firstRow = 0;
    std::vector<Drawn> m_events;
    std::vector<uint32_t> m_rows;
    std::vector<int64_t> m_waits;                      // empty where none waits
    std::vector<std::pair<uint32_t, int64_t>> m_wide;  // index and duration of the few events that last 4.29 s or more
    std::vector<std::vector<PyramidNode>> m_levels;
};

/// Deals events that may nest or overlap onto as few tracks as keep them apart: nested ranges land one track deeper
/// than what holds them.
class TrackStack {
  public:
    /// What does not fit in `maxDepth` tracks is left out and kept apart.
    TrackStack(int64_t firstRow, size_t maxDepth) : m_firstRow(firstRow), m_maxDepth(maxDepth) {}

    /// In order of start; of equal starts the longer one first reads best. Impossible times are cut (sound_time.h).
    void add(TrackEvent event);
    std::vector<Track> finish();
    int64_t firstRow() const noexcept { return m_firstRow; }
    /// In order of start; they may overlap.
    std::vector<TrackEvent> takeLeftOut() noexcept { return std::move(m_leftOut); }

  private:
    int64_t m_firstRow;
    size_t m_maxDepth;
    std::vector<TrackEvent> m_leftOut;
    std::vector<Track> m_tracks;
    std::vector<int64_t> m_ends;
};

}  // namespace rankscope::gui

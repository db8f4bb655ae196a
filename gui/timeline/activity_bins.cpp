// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/activity_bins.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rankscope::gui {
namespace {

// A line has fewer pixels on most screens. On one of 3,840 a picture of 1,024 ranks takes no longer than with twice as
// many bins, which take 40 MB more.
constexpr size_t kMinBins = 2048;
constexpr size_t kMaxBins = size_t{1} << 22;
// Rounded to a power of two these are bins for every four to eight events, 2.5 to 5 bytes an event, and a pixel of what
// is drawn from the events has eight at most.
constexpr size_t kEventsPerBin = 8;

enum class Union : uint8_t { compute, communication, waiting, memory, none };
constexpr size_t kUnions = 5;

Union unionOf(EventKind kind) {
    switch (kind) {
        case EventKind::compute:
            return Union::compute;
        case EventKind::communication:
            return Union::communication;
        case EventKind::copy:
        case EventKind::set:
            return Union::memory;
        default:
            return Union::none;
    }
}

// A stream of events that lie side by side, seen as a line of times at which one begins, has waited for other ranks or
// ends.
struct Cursor {
    const Track* track;
    size_t index;
    enum class State : uint8_t { before, waits, runs } state;  // of the event at `index`
};

constexpr int64_t kNever = INT64_MAX;

// Goes on to the next time after `now` at which the stream does something else, and tells it.
int64_t pass(Cursor& cursor, int64_t now, size_t (&active)[kUnions]) {
    const Track& track = *cursor.track;
    const auto count = [&]() -> size_t& { return active[static_cast<size_t>(unionOf(track.kind(cursor.index)))]; };
    size_t& waiting = active[static_cast<size_t>(Union::waiting)];
    if (cursor.state != Cursor::State::before) --count();
    if (cursor.state == Cursor::State::waits) --waiting;
    cursor.state = Cursor::State::before;
    while (cursor.index < track.size() && track.endNs(cursor.index) <= now) ++cursor.index;
    if (cursor.index >= track.size()) return kNever;
    const int64_t start = track.startNs(cursor.index), waited = start + track.waitNs(cursor.index);
    if (start > now) return start;
    ++count();
    cursor.state = waited > now ? Cursor::State::waits : Cursor::State::runs;
    if (waited <= now) return track.endNs(cursor.index);
    ++waiting;
    return waited;
}

// Runs through the events of all streams in time order and tells, stretch by stretch, what is active. What is looked at
// in each stretch is one number a stream: a frame close up passes hundreds of thousands of stretches.
template <typename Stretch>
void sweep(std::span<const Track* const> streams, TimeRange range, Stretch&& stretch) {
    std::vector<Cursor> cursors;
    std::vector<int64_t> turns;  // of each cursor
    size_t active[kUnions] = {};
    int64_t next = range.endNs;
    for (const Track* track : streams) {
        Cursor cursor{track, track->firstEndingAfter(range.beginNs), Cursor::State::before};
        turns.push_back(pass(cursor, range.beginNs, active));
        next = std::min(next, turns.back());
        cursors.push_back(cursor);
    }
    const auto count = [&](Union kind) { return active[static_cast<size_t>(kind)]; };
    for (int64_t now = range.beginNs; now < range.endNs;) {
        if (count(Union::compute) > 0)
            stretch(now, next, count(Union::communication) > 0 ? Activity::overlapped : Activity::compute);
        else if (count(Union::communication) > 0)
            stretch(now, next,
                    count(Union::waiting) < count(Union::communication) ? Activity::transfer : Activity::waiting);
        else if (count(Union::memory) > 0)
            stretch(now, next, Activity::memory);
        now = next;
        next = range.endNs;
        for (size_t i = 0; i < turns.size(); ++i) {
            if (turns[i] == now) turns[i] = pass(cursors[i], now, active);
            next = std::min(next, turns[i]);
        }
    }
}

}  // namespace

ActivityTimes activityIn(std::span<const Track* const> streams, TimeRange range) {
    ActivityTimes times{};
    sweep(streams, range,
          [&](int64_t from, int64_t to, Activity activity) { times[static_cast<size_t>(activity)] += to - from; });
    return times;
}

ActivityBins::ActivityBins(std::span<const Track* const> streams, TimeRange whole) : m_beginNs(whole.beginNs) {
    size_t events = 0;
    for (const Track* track : streams) events += track->size();
    if (events == 0 || whole.span() <= 0) return;
    const size_t count = std::clamp(std::bit_ceil(events / kEventsPerBin + 1), kMinBins, kMaxBins);
    m_binNs = std::max<int64_t>(1, (whole.span() + static_cast<int64_t>(count) - 1) / static_cast<int64_t>(count));

    std::vector<Bin> lowest(count, Bin{});
    std::array<int64_t, kActivities> current{};
    size_t open = 0;
    const auto close = [&] {
        for (size_t a = 0; a < kActivities; ++a)
            lowest[open][a] = static_cast<uint16_t>(
                std::llround(65535.0 * static_cast<double>(current[a]) / static_cast<double>(m_binNs)));
        current = {};
    };
    sweep(streams, whole, [&](int64_t from, int64_t to, Activity activity) {
        while (from < to) {
            const auto bin = std::min(count - 1, static_cast<size_t>((from - m_beginNs) / m_binNs));
            if (bin != open) {
                close();
                open = bin;
            }
            const int64_t until = std::min(to, m_beginNs + static_cast<int64_t>(bin + 1) * m_binNs);
            current[static_cast<size_t>(activity)] += until - from;
            from = until;
        }
    });
    close();
    m_levels.push_back(std::move(lowest));
    while (m_levels.back().size() > 1) {
        const std::vector<Bin>& below = m_levels.back();
        std::vector<Bin> bins(below.size() / 2);
        for (size_t i = 0; i < bins.size(); ++i)
            for (size_t a = 0; a < kActivities; ++a)
                bins[i][a] = static_cast<uint16_t>((below[2 * i][a] + below[2 * i + 1][a] + 1) / 2);
        m_levels.push_back(std::move(bins));
    }
}

ActivityBins::ActivityBins(int64_t beginNs, int64_t binNs, std::span<const std::array<uint8_t, kActivities>> shares)
    : m_beginNs(beginNs), m_binNs(std::max<int64_t>(1, binNs)) {
    if (shares.empty()) return;
    std::vector<Bin> lowest(shares.size());
    for (size_t i = 0; i < shares.size(); ++i)
        for (size_t a = 0; a < kActivities; ++a) lowest[i][a] = static_cast<uint16_t>(shares[i][a] * 257);
    m_levels.push_back(std::move(lowest));
}

std::array<float, kActivities> ActivityBins::shares(TimeRange range) const noexcept {
    std::array<float, kActivities> shares{};
    if (empty() || range.span() <= 0) return shares;
    // The coarsest level with at least two bins in the range.
    const double wanted = static_cast<double>(range.span()) / static_cast<double>(m_binNs) / 2;
    const auto level =
        std::min<size_t>(m_levels.size() - 1, wanted < 1 ? 0 : std::bit_width(static_cast<uint64_t>(wanted)) - 1);
    const std::vector<Bin>& bins = m_levels[level];
    const double binNs = static_cast<double>(m_binNs) * static_cast<double>(size_t{1} << level);
    const double from = static_cast<double>(range.beginNs - m_beginNs) / binNs,
                 to = static_cast<double>(range.endNs - m_beginNs) / binNs;
    const auto last = std::min<int64_t>(static_cast<int64_t>(bins.size()), static_cast<int64_t>(std::ceil(to)));
    for (int64_t i = std::max<int64_t>(0, static_cast<int64_t>(std::floor(from))); i < last; ++i) {
        const double weight =
            (std::min<double>(to, static_cast<double>(i + 1)) - std::max<double>(from, static_cast<double>(i))) /
            (to - from);
        const auto scale = static_cast<float>(weight / 65535);
        for (size_t a = 0; a < kActivities; ++a)
            shares[a] += scale * static_cast<float>(bins[static_cast<size_t>(i)][a]);
    }
    return shares;
}

size_t ActivityBins::bytes() const noexcept {
    size_t bytes = 0;
    for (const auto& level : m_levels) bytes += level.size() * sizeof(Bin);
    return bytes;
}

void drawActivity(const ActivityView& rank, const TimeAxis& axis, std::vector<ActivityColumn>& columns) {
    columns.clear();
    if (rank.bins == nullptr || rank.bins->empty()) return;
    const ActivityBins& bins = *rank.bins;
    const TimeRange visible = axis.visible();
    const auto width = static_cast<int32_t>(axis.width());
    const double nsPerPixel = static_cast<double>(visible.span()) / axis.width();
    if (rank.streams.empty() || nsPerPixel >= static_cast<double>(bins.binNs())) {
        for (int32_t x = 0; x < width; ++x) {
            const int64_t fromNs = axis.timeAt(x);  // close up a column is less than a nanosecond
            const auto shares = bins.shares({fromNs, std::max(fromNs + 1, axis.timeAt(x + 1))});
            if (shares != std::array<float, kActivities>{}) columns.push_back({x, shares});
        }
        return;
    }
    // Closer than a bin: the events themselves are few now.
    const double scale = axis.pixelsPerNs();
    ActivityColumn column{-1, {}};
    const auto add = [&](int32_t x, double share, Activity activity) {
        if (column.x != x) {
            if (column.x >= 0) columns.push_back(column);
            column = {x, {}};
        }
        column.shares[static_cast<size_t>(activity)] += static_cast<float>(share);
    };
    sweep(rank.streams, visible, [&](int64_t from, int64_t to, Activity activity) {
        const double left = static_cast<double>(from - visible.beginNs) * scale,
                     right = std::min(static_cast<double>(to - visible.beginNs) * scale, static_cast<double>(width));
        auto x = static_cast<int32_t>(left);
        if (right <= x + 1) {  // most are within a pixel
            if (x < right) add(x, right - left, activity);
            return;
        }
        for (; x < right; ++x) add(x, std::min<double>(right, x + 1) - std::max<double>(left, x), activity);
    });
    if (column.x >= 0) columns.push_back(column);
}

}  // namespace rankscope::gui

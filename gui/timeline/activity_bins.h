// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "gui/timeline/time_axis.h"
#include "gui/timeline/track.h"

namespace rankscope::gui {

/// What a rank's GPU does at a time. With C the union of its compute kernels, N of its communication kernels, T of the
/// parts of these that do not wait for other ranks, and M of its copies and sets: overlapped = C and N, compute = C
/// without N, transfer = T without C, waiting = N without (C or T), memory = M without (C or N); the rest is idle. They
/// never overlap.
enum class Activity : uint8_t { compute, overlapped, waiting, transfer, memory };
inline constexpr size_t kActivities = 5;

/// Nanoseconds of each activity.
using ActivityTimes = std::array<int64_t, kActivities>;

/// Exact times of each activity of a rank in `range`, from RankTracks::deviceTracks().
ActivityTimes activityIn(std::span<const Track* const> streams, TimeRange range);

/// Shares of each activity in even bins of time, and, where they are made of events, of bins twice as long, and so on:
/// what a summary lane shows however far one zooms out.
class ActivityBins {
  public:
    ActivityBins() = default;
    /// Bins over `whole`, one for every four to eight events, so that closer up the events themselves are few enough to
    /// be looked at.
    ActivityBins(std::span<const Track* const> streams, TimeRange whole);
    /// Bins as the analysis left them: each `binNs` long, in 255ths. Only this level is made: these bins are needed
    /// until the events of their rank are loaded, and for all ranks at once.
    ActivityBins(int64_t beginNs, int64_t binNs, std::span<const std::array<uint8_t, kActivities>> shares);

    bool empty() const noexcept { return m_levels.empty(); }
    int64_t binNs() const noexcept { return m_binNs; }
    /// Shares 0..1 of each activity in `range`, to the width of a bin; of a shorter range those of the bins it lies in.
    std::array<float, kActivities> shares(TimeRange range) const noexcept;
    size_t bytes() const noexcept;

  private:
    using Bin = std::array<uint16_t, kActivities>;  // 65535: the whole bin

    int64_t m_beginNs = 0;
    int64_t m_binNs = 1;
    std::vector<std::vector<Bin>> m_levels;
};

/// What a summary lane shows: a stack of shares per column of pixels.
struct ActivityColumn {
    int32_t x = 0;
    std::array<float, kActivities> shares{};
};

/// What the GPU of one rank does, to be looked at: `streams` are RankTracks::deviceTracks(), none where its events are
/// not loaded. Valid until the rank's tracks or its line change.
struct ActivityView {
    const ActivityBins* bins = nullptr;
    std::vector<const Track*> streams;
};

/// One entry per column with any activity. Closer up than a bin they are those of the events, or of the bin where no
/// events are loaded.
void drawActivity(const ActivityView& rank, const TimeAxis& axis, std::vector<ActivityColumn>& columns);

}  // namespace rankscope::gui

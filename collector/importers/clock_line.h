// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace rankscope::collector {

/// What turns times of one clock into those of another: t - ahead - drift * (t - anchor).
struct ClockLine {
    int64_t aheadNs = 0;   ///< at the anchor
    double drift = 0;      ///< seconds that it gains in a second
    int64_t anchorNs = 0;  ///< a time of the clock itself

    bool isSame() const { return aheadNs == 0 && drift == 0; }
    int64_t aheadAt(int64_t timeNs) const;
    int64_t moved(int64_t timeNs) const { return timeNs - aheadAt(timeNs); }
    /// The other way, from the same anchor.
    ClockLine reversed() const;
    /// First this one, then the other, which has the same anchor.
    ClockLine then(const ClockLine& next) const;
};

struct FittedLine {
    ClockLine line;
    int64_t boundNs = 0;  ///< four of five distances lie within it
};

/// The line through (time, distance) that half of the points are above, so that single ones that are far off do not
/// matter (median of the slopes of points half the recording apart, after Theil and Sen). Empty where fewer than
/// `fewest` tell it, or where the points lie at one time.
std::optional<FittedLine> fitClockLine(std::vector<std::pair<int64_t, int64_t>> points, int64_t anchorNs,
                                       size_t fewest);

}  // namespace rankscope::collector

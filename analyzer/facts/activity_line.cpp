// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/activity_line.h"

#include <algorithm>

namespace rankscope::facts {
namespace {

/// Adds one kind's share of each bin.
void fill(ActivityLine& line, size_t kind, const IntervalSet& times) {
    const auto close = [&](size_t bin, int64_t ns) {
        if (ns <= 0) return;
        const int64_t share = (255 * ns + line.binNs / 2) / line.binNs;
        line.bins[bin][kind] = static_cast<uint8_t>(std::clamp<int64_t>(share, 1, 255));
    };
    size_t open = 0;
    int64_t inOpen = 0;
    for (const Interval& time : times)
        for (int64_t fromNs = time.startNs; fromNs < time.endNs;) {
            const auto bin = static_cast<size_t>((fromNs - line.startNs) / line.binNs);
            if (bin != open) {
                close(open, inOpen);
                open = bin;
                inOpen = 0;
            }
            const int64_t untilNs = std::min(time.endNs, line.startNs + static_cast<int64_t>(bin + 1) * line.binNs);
            inOpen += untilNs - fromNs;
            fromNs = untilNs;
        }
    close(open, inOpen);
}

}  // namespace

ActivityLine activityLine(const DeviceActivity& activity) {
    const IntervalSet communication = unite(activity.transfer, activity.wait);
    const IntervalSet kernels = unite(activity.compute, communication);
    const IntervalSet busy = unite(kernels, activity.memory);
    ActivityLine line;
    if (busy.empty()) return line;
    // Times of a damaged file may be anything: no line is drawn of what is centuries long.
    constexpr int64_t kFarthestNs = INT64_MAX / 1024;
    if (busy.front().startNs < -kFarthestNs || busy.back().endNs > kFarthestNs) return line;
    line.startNs = busy.front().startNs;
    line.binNs = (busy.back().endNs - line.startNs - 1) / static_cast<int64_t>(ActivityLine::kBins) + 1;
    line.bins.resize(ActivityLine::kBins);
    fill(line, 0, subtract(activity.compute, communication));
    fill(line, 1, intersect(activity.compute, communication));
    fill(line, 2, subtract(communication, unite(activity.compute, activity.transfer)));
    fill(line, 3, subtract(activity.transfer, activity.compute));
    fill(line, 4, subtract(activity.memory, kernels));
    return line;
}

}  // namespace rankscope::facts

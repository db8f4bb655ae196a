// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/activity_line.h"

#include <algorithm>

namespace rankscope::facts {
namespace {

/// Adds the share of one activity in each bin.
void fill(ActivityLine& line, Activity activity, const IntervalSet& times) {
    const auto close = [&](size_t bin, int64_t ns) {
        if (ns <= 0) return;
        const int64_t share = (255 * ns + line.binNs / 2) / line.binNs;
        line.bins[bin][static_cast<size_t>(activity)] = static_cast<uint8_t>(std::clamp<int64_t>(share, 1, 255));
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
    // Times of a damaged file may be anything.
    if (busy.front().startNs < -ActivityLine::kFarthestNs || busy.back().endNs > ActivityLine::kFarthestNs) return line;
    line.startNs = busy.front().startNs;
    line.binNs = (busy.back().endNs - line.startNs - 1) / static_cast<int64_t>(ActivityLine::kBins) + 1;
    line.bins.resize(ActivityLine::kBins);
    fill(line, Activity::compute, subtract(activity.compute, communication));
    fill(line, Activity::overlapped, intersect(activity.compute, communication));
    fill(line, Activity::waiting, subtract(communication, unite(activity.compute, activity.transfer)));
    fill(line, Activity::transfer, subtract(activity.transfer, activity.compute));
    fill(line, Activity::memory, subtract(activity.memory, kernels));
    return line;
}

}  // namespace rankscope::facts

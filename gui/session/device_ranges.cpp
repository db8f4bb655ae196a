// SPDX-License-Identifier: Apache-2.0
#include "gui/session/device_ranges.h"

#include <algorithm>
#include <tuple>

namespace rankscope::gui {
namespace {

struct SeenFrom {
    int64_t beginNs = INT64_MAX, endNs = INT64_MIN;

    void add(const LaunchedWork& work) {
        beginNs = std::min(beginNs, work.startNs);
        endNs = std::max(endNs, work.endNs);
    }
};

}  // namespace

std::vector<DeviceRange> rangesOnDevice(std::vector<OpenRange> ranges, std::vector<LaunchCall> calls,
                                        std::vector<LaunchedWork> work) {
    std::ranges::sort(work, {}, &LaunchedWork::correlation);
    std::ranges::sort(calls, {}, [](const LaunchCall& call) { return std::pair(call.thread, call.startNs); });
    std::ranges::sort(ranges, {}, [](const OpenRange& range) { return std::pair(range.thread, range.startNs); });
    std::vector<SeenFrom> extents(ranges.size());
    std::vector<size_t> open;
    size_t next = 0;
    for (const LaunchCall& call : calls) {
        // All that began on this thread before the call, and of those what is not over yet.
        for (; next < ranges.size() &&
               std::pair(ranges[next].thread, ranges[next].startNs) <= std::pair(call.thread, call.startNs);
             ++next)
            open.push_back(next);
        std::erase_if(open, [&](size_t range) {
            return ranges[range].thread != call.thread || ranges[range].endNs <= call.startNs;
        });
        if (open.empty()) continue;
        const auto [from, to] = std::ranges::equal_range(work, call.correlation, {}, &LaunchedWork::correlation);
        for (auto launched = from; launched != to; ++launched)
            for (const size_t range : open) extents[range].add(*launched);
    }
    std::vector<DeviceRange> found;
    for (size_t i = 0; i < ranges.size(); ++i)
        if (extents[i].beginNs <= extents[i].endNs)
            found.push_back({ranges[i].thread,
                             {extents[i].beginNs, extents[i].endNs - extents[i].beginNs, ranges[i].name, ranges[i].row,
                              EventKind::nvtx}});
    std::ranges::stable_sort(
        found, {}, [](const DeviceRange& range) { return std::pair(range.event.startNs, -range.event.durNs); });
    return found;
}

}  // namespace rankscope::gui

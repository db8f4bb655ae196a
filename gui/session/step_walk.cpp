// SPDX-License-Identifier: Apache-2.0
#include "gui/session/step_walk.h"

#include <algorithm>
#include <iterator>

namespace rankscope::gui {

std::optional<TimeRange> stepBeside(const RunInfo& run, int32_t rank, TimeRange visible, int by) {
    constexpr int64_t kRoom = 50;  // a step and a fiftieth at each end: both borders are seen
    if (run.steps.empty()) return std::nullopt;
    const auto byRank = [](const StepInfo& step, int32_t of) { return step.rank < of; };
    auto first = std::lower_bound(run.steps.begin(), run.steps.end(), rank, byRank);
    if (first == run.steps.end() || first->rank != rank) first = run.steps.begin();
    const auto last =
        std::partition_point(first, run.steps.end(), [&](const StepInfo& step) { return step.rank == first->rank; });
    const int64_t middle = visible.beginNs + visible.span() / 2;
    const auto next =
        std::partition_point(first, last, [middle](const StepInfo& step) { return step.range.beginNs <= middle; });
    const std::ptrdiff_t wanted = std::distance(first, next) - 1 + by;
    if (wanted < 0 || wanted >= std::distance(first, last)) return std::nullopt;
    const TimeRange step = (first + wanted)->range;
    const int64_t room = step.span() / kRoom;
    return TimeRange{step.beginNs - room, step.endNs + room};
}

}  // namespace rankscope::gui

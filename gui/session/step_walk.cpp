// SPDX-License-Identifier: Apache-2.0
#include "gui/session/step_walk.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace rankscope::gui {

namespace {

using Steps = std::span<const StepInfo>;

// Of `rank`, or of the first rank that has some where it has none.
Steps stepsOf(const RunInfo& run, int32_t rank) {
    const auto byRank = [](const StepInfo& step, int32_t of) { return step.rank < of; };
    auto first = std::lower_bound(run.steps.begin(), run.steps.end(), rank, byRank);
    if (first == run.steps.end() || first->rank != rank) first = run.steps.begin();
    const auto last =
        std::partition_point(first, run.steps.end(), [&](const StepInfo& step) { return step.rank == first->rank; });
    return {first, last};
}

TimeRange withRoom(TimeRange step) {
    constexpr int64_t kRoom = 50;  // a step and a fiftieth at each end: both borders are seen
    const int64_t room = step.span() / kRoom;
    return TimeRange{step.beginNs - room, step.endNs + room};
}

}  // namespace

std::optional<TimeRange> stepBeside(const RunInfo& run, int32_t rank, TimeRange visible, int by) {
    const Steps steps = stepsOf(run, rank);
    const int64_t middle = visible.beginNs + visible.span() / 2;
    const auto next = std::partition_point(steps.begin(), steps.end(),
                                           [middle](const StepInfo& step) { return step.range.beginNs <= middle; });
    const std::ptrdiff_t wanted = std::distance(steps.begin(), next) - 1 + by;
    if (wanted < 0 || wanted >= std::ssize(steps)) return std::nullopt;
    return withRoom(steps[static_cast<size_t>(wanted)].range);
}

std::optional<TimeRange> roomOfStep(const RunInfo& run, int32_t rank, int64_t number) {
    const Steps steps = stepsOf(run, rank);
    const auto found = std::ranges::find(steps, number, [](const StepInfo& step) { return int64_t{step.step}; });
    if (found == steps.end()) return std::nullopt;
    return withRoom(found->range);
}

}  // namespace rankscope::gui

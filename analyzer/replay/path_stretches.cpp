// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/path_stretches.h"

#include <algorithm>
#include <ranges>

namespace rankscope::replay {
namespace {

/// The mark with which the last of `steps` ends, and when the first begins.
struct Ends {
    TaskId last = kNoTask;
    int64_t fromNs = INT64_MAX;
};

Ends endsOf(const TaskGraph& graph, const Schedule& schedule, const std::vector<int>& steps) {
    Ends ends;
    int64_t untilNs = INT64_MIN;
    for (const StepTime& time : stepTimes(graph, schedule)) {
        if (std::ranges::find(steps, time.step) == steps.end()) continue;
        ends.fromNs = std::min(ends.fromNs, time.startNs);
        untilNs = std::max(untilNs, time.startNs + time.durNs);
    }
    for (const StepMark& mark : graph.marks)
        if (schedule.startNs[mark.task] <= untilNs &&
            (ends.last == kNoTask || schedule.startNs[mark.task] > schedule.startNs[ends.last]))
            ends.last = mark.task;
    return ends;
}

bool isOnDevice(TaskKind kind) {
    return kind == TaskKind::kernel || kind == TaskKind::transfer || kind == TaskKind::copy || kind == TaskKind::set;
}

}  // namespace

std::vector<PathStretch> pathStretches(const TaskGraph& graph, const Schedule& schedule, const std::vector<int>& steps,
                                       const RecordedTimes& recorded) {
    const Ends ends = endsOf(graph, schedule, steps);
    if (ends.last == kNoTask) return {};
    std::vector<PathStretch> stretches;  // the last first
    int64_t reachedNs = schedule.startNs[ends.last];
    bool isPlaced = false;  // by the recording
    TaskId last = kNoTask;
    for (const PathPiece& piece : pathBefore(graph, schedule, ends.last, ends.fromNs)) {
        // A task's own piece comes before that which it waited for.
        const bool isOwn = std::exchange(last, piece.task) != piece.task && isOnDevice(graph.info[piece.task].kind);
        if (const auto time = isOwn ? recorded(graph.info[piece.task]) : std::nullopt) {
            if (!isPlaced)
                for (PathStretch& before : stretches) {
                    before.startNs += time->endNs - reachedNs;
                    before.endNs += time->endNs - reachedNs;
                }
            isPlaced = true;
            reachedNs = time->endNs;
            if (!stretches.empty()) stretches.back().startNs = reachedNs;
        }
        if (stretches.empty() || stretches.back().rank != piece.rank)
            stretches.push_back({piece.rank, reachedNs, reachedNs});
        reachedNs -= piece.ns;
        stretches.back().startNs = reachedNs;
    }
    std::erase_if(stretches, [](const PathStretch& stretch) { return stretch.endNs <= stretch.startNs; });
    std::ranges::reverse(stretches);
    return stretches;
}

}  // namespace rankscope::replay

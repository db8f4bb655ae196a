// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/critical_path.h"

#include <algorithm>
#include <functional>
#include <map>

namespace rankscope::replay {
namespace {

PathCategory categoryOf(TaskKind kind) {
    switch (kind) {
        case TaskKind::kernel:
            return PathCategory::compute;
        case TaskKind::arrival:
        case TaskKind::join:
        case TaskKind::transfer:
            return PathCategory::transfer;
        case TaskKind::copy:
        case TaskKind::set:
            return PathCategory::memory;
        default:
            return PathCategory::host;
    }
}

/// Says what a task began after: the task, when that let go, and by what.
struct Cause {
    TaskId task = kNoTask;
    int64_t ns = INT64_MIN;  // of the cause's end, or start
    int64_t allowedNs = INT64_MIN;
    bool lane = false;
    WaitKind kind = WaitKind::event;
};

Cause causeOf(const TaskGraph& graph, const Schedule& schedule, TaskId task) {
    Cause cause;
    if (const TaskId before = graph.before[task]; before != kNoTask)
        cause = {before, schedule.endNs[before], schedule.endNs[before] + graph.leadNs[task], true};
    for (const Edge& edge : graph.edgesOf(task)) {
        const int64_t ns = edge.afterStart ? schedule.startNs[edge.from] : schedule.endNs[edge.from];
        if (ns + edge.delayNs > cause.allowedNs) cause = {edge.from, ns, ns + edge.delayNs, false, edge.kind};
    }
    return cause;
}

/// Walks back from a task that is known to have been reached at `untilNs`, until `fromNs`.
template <typename Visit>
void walkBack(const TaskGraph& graph, const Schedule& schedule, TaskId task, int64_t fromNs, int64_t untilNs,
              Visit&& visit) {
    int lastRank = task == kNoTask ? -1 : graph.rankOf(task);
    const auto add = [&](PathCategory category, int rank, int64_t startNs, int64_t endNs) {
        startNs = std::clamp(startNs, fromNs, untilNs);
        endNs = std::clamp(endNs, fromNs, untilNs);
        if (endNs > startNs) visit(PathPiece{category, rank, task, endNs - startNs});
    };
    int64_t reachedNs = untilNs;
    while (task != kNoTask && reachedNs > fromNs) {
        const TaskInfo& info = graph.info[task];
        const int rank = graph.rankOf(task);
        if (rank >= 0) lastRank = rank;
        add(categoryOf(info.kind), lastRank, schedule.startNs[task], reachedNs);
        reachedNs = std::min(reachedNs, schedule.startNs[task]);
        const Cause cause = causeOf(graph, schedule, task);
        const bool host = graph.onHost(task);
        if (cause.task == kNoTask || cause.allowedNs < schedule.startNs[task]) {
            add(host ? PathCategory::host : PathCategory::gap, lastRank, fromNs,
                reachedNs);  // first of its lane: bound by its lead alone
            break;
        }
        // In front of a transfer the path is in what one of several messages takes longer.
        const PathCategory between = info.kind == TaskKind::transfer                 ? PathCategory::transfer
                                     : !cause.lane && cause.kind == WaitKind::launch ? PathCategory::launch
                                     : host                                          ? PathCategory::host
                                                                                     : PathCategory::gap;
        add(between, lastRank, cause.ns, reachedNs);
        reachedNs = std::min(reachedNs, cause.ns);
        task = cause.task;
    }
}

/// Walks the critical path from its end, and says through how many steps it goes.
template <typename Visit>
size_t walkPath(const TaskGraph& graph, const Schedule& schedule, const std::vector<int>& steps, Visit&& visit) {
    const std::vector<StepTime> times = stepTimes(graph, schedule);
    int64_t fromNs = INT64_MAX, untilNs = INT64_MIN;
    size_t count = 0;
    for (const StepTime& time : times) {
        if (std::ranges::find(steps, time.step) == steps.end()) continue;
        fromNs = std::min(fromNs, time.startNs);
        untilNs = std::max(untilNs, time.startNs + time.durNs);
        ++count;
    }
    if (count == 0) return 0;
    TaskId task = kNoTask;
    for (const StepMark& mark : graph.marks)
        if (schedule.startNs[mark.task] <= untilNs &&
            (task == kNoTask || schedule.startNs[mark.task] > schedule.startNs[task]))
            task = mark.task;
    walkBack(graph, schedule, task, fromNs, untilNs, visit);
    return count;
}

}  // namespace

std::string_view toText(PathCategory category) {
    constexpr std::string_view kTexts[] = {"compute", "transfer", "memory", "host", "launch", "gap"};
    return kTexts[static_cast<size_t>(category)];
}

std::vector<PathShare> criticalPath(const TaskGraph& graph, const Schedule& schedule, const std::vector<int>& steps) {
    std::map<std::pair<PathCategory, int>, int64_t> sums;
    const size_t count = walkPath(graph, schedule, steps, [&](const PathPiece& piece) {
        sums[{piece.category, piece.rank}] += piece.ns;
    });
    std::vector<PathShare> shares;
    for (const auto& [key, ns] : sums)
        shares.push_back({key.first, key.second, static_cast<double>(ns) / static_cast<double>(count)});
    std::ranges::stable_sort(shares, std::ranges::greater{}, &PathShare::nsPerStep);
    return shares;
}

std::vector<PathPiece> pathBefore(const TaskGraph& graph, const Schedule& schedule, TaskId task, int64_t fromNs) {
    std::vector<PathPiece> pieces;
    walkBack(graph, schedule, task, fromNs, schedule.startNs[task],
             [&](const PathPiece& piece) { pieces.push_back(piece); });
    return pieces;
}

std::vector<PathTransfer> criticalTransfers(const TaskGraph& graph, const Schedule& schedule,
                                            const std::vector<int>& steps) {
    std::map<std::pair<uint32_t, store::Op>, int64_t> sums;
    const size_t count = walkPath(graph, schedule, steps, [&](const PathPiece& piece) {
        if (piece.category != PathCategory::transfer) return;
        const uint32_t index = graph.info[piece.task].detail;
        const Exchange exchange = index < graph.exchanges.size() ? graph.exchanges[index] : Exchange{};
        sums[{exchange.communicatorId, exchange.op}] += piece.ns;
    });
    std::vector<PathTransfer> transfers;
    for (const auto& [key, ns] : sums)
        transfers.push_back({key.first, key.second, static_cast<double>(ns) / static_cast<double>(count)});
    return transfers;
}

}  // namespace rankscope::replay

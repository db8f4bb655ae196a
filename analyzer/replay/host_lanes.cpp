// SPDX-License-Identifier: Apache-2.0
// Decides how the threads of a rank share lanes (HostLanes).
#include <algorithm>

#include "analyzer/replay/rank_recorder.h"

namespace rankscope::replay {
namespace {

// Threads whose calls overlap for more than this share of their time work side by side; under it a call merely ends a
// little after control has gone over.
constexpr double kSideBySide = 0.02;

}  // namespace

void HostLanes::assign(const std::vector<facts::HostCall>& calls, const std::vector<bool>& active, int rank,
                       GraphDraft& draft) {
    std::map<int32_t, bool> threads;
    for (size_t i = 0; i < calls.size(); ++i)
        if (active[i]) threads[calls[i].threadId] = true;
    int64_t busyNs = 0;
    int64_t overlapNs = 0;
    int64_t untilNs = INT64_MIN;
    int32_t last = -1;
    for (const facts::HostCall& call : calls) {
        if (threads.count(call.threadId) == 0) continue;
        busyNs += call.endNs - call.startNs;
        if (call.threadId != last && untilNs > call.startNs) overlapNs += std::min(untilNs, call.endNs) - call.startNs;
        untilNs = std::max(untilNs, call.endNs);
        last = call.threadId;
    }
    const bool turns = static_cast<double>(overlapNs) <= kSideBySide * static_cast<double>(busyNs);
    for (const auto& [thread, unused] : threads)
        m_lanes[thread] = turns && !m_lanes.empty() ? m_lanes.begin()->second : draft.addLane({rank, true, thread});
}

uint32_t HostLanes::laneOf(int32_t thread) const {
    const auto lane = m_lanes.find(thread);
    return lane == m_lanes.end() ? kNoLane : lane->second;
}

TaskId HostLanes::add(GraphDraft& draft, TaskInfo info, uint32_t lane, int64_t startNs, int64_t endNs,
                      int64_t durationNs) {
    const TaskId before = draft.last(lane);
    const auto [busy, isNew] = m_busyUntil.try_emplace(lane, 0);
    const int64_t freeNs = busy->second;
    if (startNs < freeNs && before != kNoTask) {
        // A call inside another one: the outer one goes on behind it.
        const int64_t cutNs = std::min(freeNs - startNs, draft.durationNs(before));
        draft.durationNs(before) -= cutNs;
        durationNs += cutNs - std::min(cutNs, endNs - startNs);
    }
    info.lane = lane & kNoLane;
    busy->second = std::max(freeNs, endNs);
    return draft.addTask(info, durationNs, startNs - freeNs);
}

}  // namespace rankscope::replay

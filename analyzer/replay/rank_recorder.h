// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <unordered_map>

#include "analyzer/replay/device_lanes.h"
#include "analyzer/replay/rank_tasks.h"

namespace rankscope::replay {

/// The lanes of a rank's host threads that work with the device. Threads that take turns (a program's own and
/// autograd's) are one lane: while one works the other waits for it. Threads that work at the same time are a lane
/// each.
class HostLanes {
  public:
    /// `active` says by call whether its thread shall be kept for it.
    void assign(const std::vector<facts::HostCall>& calls, const std::vector<bool>& active, int rank,
                GraphDraft& draft);

    /// Returns kNoLane where the thread has nothing to do with the device.
    uint32_t laneOf(int32_t thread) const;
    uint32_t anyLane() const { return m_lanes.empty() ? kNoLane : m_lanes.begin()->second; }
    /// Adds a task that begins at `startNs` and ends at `endNs` by the recording. One that begins inside the task
    /// before it cuts that off.
    TaskId add(GraphDraft& draft, TaskInfo info, uint32_t lane, int64_t startNs, int64_t endNs, int64_t durationNs);

  private:
    std::map<int32_t, uint32_t> m_lanes;      // by thread
    std::map<uint32_t, int64_t> m_busyUntil;  // by lane: recorded end of its last task
};

/// Walks through a rank's host calls in order of time and plays what they do: put work on streams, record events, wait
/// for them.
class RankRecorder {
  public:
    RankRecorder(const facts::RankEvents& events, const facts::TraceFacts& facts, const ReplayWindow& window);
    RankTasks run();

  private:
    void findProblem();
    void playCalls();
    void takeCall(const facts::HostCall& call);
    TaskId roomMaker(const facts::HostCall& call, int32_t stream);
    void waitForRoom(const facts::HostCall& call, int32_t stream);
    TaskInfo infoOf(const facts::HostCall& call, TaskKind kind) const;
    void submit(const facts::HostCall& call, uint32_t hostLane);
    void waitForDevice(const facts::HostCall& call, uint32_t hostLane, std::vector<TaskId> tasks, bool inferred);
    /// Returns what a synchronisation waits for.
    std::vector<TaskId> awaitedBy(const facts::HostCall& call);
    /// True when a call that is not known to wait seems to have waited for the device.
    bool seemsToWait(const facts::HostCall& call) const;
    void recordEvent(const facts::EventRecord& record, const facts::HostCall& call);
    void streamWaits(const facts::SynchronizationRecord& wait, const facts::HostCall& call);
    void markStepsUntil(int64_t ns);
    void markStep(int64_t ns, size_t index);
    TaskId addMark(int step, bool closes, int64_t atNs);
    void markStepsByDevice();

    const facts::RankEvents& m_events;
    const facts::TraceFacts& m_facts;
    const facts::RankFacts* m_rank = nullptr;
    RankTasks m_result;
    HostLanes m_host;
    DeviceLanes m_device;
    CorrelationIndex m_records, m_waits;
    std::unordered_map<int64_t, std::vector<TaskId>> m_eventTasks;  // event: what it stands for
    std::map<int32_t, std::vector<TaskId>> m_streamlessWaits;       // thread: its next work on another stream waits
    std::map<int32_t, int32_t> m_lastStream;                        // thread: where it put work last
    std::unordered_map<int32_t, int64_t> m_usualNs;                 // name of a call: its usual duration
    std::vector<int64_t> m_bounds;  // host times of step ranges, then the end of the last; empty: by the device
    size_t m_nextBound = 0;
    size_t m_lastBound = SIZE_MAX;  // with a window: its end
    bool m_windowed = false;
    int m_step = -1;
};

}  // namespace rankscope::replay

// SPDX-License-Identifier: Apache-2.0
// Tells why a device stood still, from what its host did meanwhile. A standstill ends when an operation begins. When
// that operation had been submitted long before, something on the device held it up; when it was only just submitted,
// the host was late, and the question is what the host did instead.
#pragma once

#include <vector>

#include "analyzer/facts/host_activity.h"
#include "analyzer/facts/rank_summary.h"

namespace rankscope::facts {

/// Is built once per rank; the events must outlive it.
class IdleCauses {
  public:
    explicit IdleCauses(const RankEvents& events);
    bool hostIsKnown() const { return !m_events.hostCalls.empty(); }
    /// `gap` lies between two device operations or at a step's edges; `stepStartNs` is that of its step.
    IdleVerdict of(const Interval& gap, int64_t stepStartNs) const;

  private:
    struct Start {
        int64_t deviceStartNs = 0;
        int64_t deviceEndNs = 0;
        const HostCall* submission = nullptr;
    };
    /// True when nothing ran on the device as the call began: it had nothing to wait for but work of its own.
    bool foundIdle(const HostCall& call) const;
    const Start* endOf(const Interval& gap) const;
    /// Returns the last call in front of a submission that waited for the device, if nothing else was submitted in
    /// between.
    const HostCall* drain(const HostCall& submission, int64_t idleFromNs) const;
    int32_t rangeAt(int32_t thread, int64_t timeNs) const;
    /// Returns the last range or operation in front of that time that loads data.
    int32_t loadingBefore(int64_t timeNs) const;
    IdleVerdict lateHost(const Interval& gap, const HostCall& submission, int64_t stepStartNs) const;

    /// True when no kernel begins between the two: what a step begins with are copies of its batch.
    bool withoutKernels(int64_t fromNs, int64_t untilNs) const;
    /// True when nothing but the wait for a batch explains that the host does nothing at the start of a step.
    bool silentForInput(int64_t fromNs, const HostCall& submission) const;

    const RankEvents& m_events;
    HostActivity m_activity;
    std::vector<Start> m_starts;                 // of device operations, by device time
    std::vector<int64_t> m_busyUntilNs;          // up to each of them, that one included
    std::vector<const HostCall*> m_waiting;      // calls that wait for the device, by end
    std::vector<const HostCall*> m_submissions;  // by start
    // Host time in allocator calls, in data-loading ranges, in any call.
    CoveredLength m_allocating, m_loading, m_inCuda;
    int64_t m_latencyNs = 0;  // from the end of a submission to its start on an idle device
};

/// Finds when the host keeps the device from computing, in all steps, by start. Unlike an idle gap a stall goes on
/// while a collective runs: what a late host costs does not shrink because communication that compute would have hidden
/// shows meanwhile. Waiting for other ranks is left out. Empty when no host calls are recorded.
std::vector<HostStall> hostStalls(const DeviceActivity& activity, const IdleCauses& causes, const RankFacts& facts);

}  // namespace rankscope::facts

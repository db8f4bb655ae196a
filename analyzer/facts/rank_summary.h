// SPDX-License-Identifier: Apache-2.0
// Holds what phase 1 keeps of a rank: small enough for all ranks to be in memory at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "analyzer/facts/activity_line.h"
#include "analyzer/facts/contention.h"
#include "analyzer/facts/device_activity.h"
#include "analyzer/facts/held_memory.h"
#include "analyzer/facts/intervals.h"
#include "analyzer/facts/rank_events.h"

namespace rankscope::facts {

/// Says where a rank's step went, to the nanosecond: computeNs + exposedCommNs() + memoryNs + idleNs == stepNs.
struct Attribution {
    int64_t stepNs = 0;
    int64_t computeNs = 0;          // |C|, the time with hidden communication included
    int64_t exposedWaitNs = 0;      // part of |N \ C| in which every running NCCL kernel waits for others
    int64_t exposedTransferNs = 0;  // the rest of |N \ C|
    int64_t lateTransferNs = 0;     // part of exposedTransferNs: exposed only because other ranks came late
    int64_t unsplitNs = 0;          // part of both: waiting or transfer, which of them is unknown
    int64_t overlappedCommNs = 0;   // |N and C|, part of computeNs
    int64_t memoryNs = 0;           // |M \ (C or N)|
    int64_t idleNs = 0;

    int64_t exposedCommNs() const { return exposedWaitNs + exposedTransferNs; }
    Attribution& operator+=(const Attribution& other);
};

/// Attributes the window [startNs, endNs), and returns its idle intervals in `idle`.
Attribution attribute(const DeviceActivity& activity, int64_t startNs, int64_t endNs, IntervalSet* idle = nullptr);

/// Sums up the kernels of one key in one analysed step of one rank.
struct KernelStatistics {
    KernelKey key;
    int step = 0;  // its number
    int32_t count = 0;
    int64_t totalNs = 0;
    double medianNs = 0;
};

enum class IdleCause : uint8_t { other, blockingCall, lateLaunch, allocator, input, dependency };
std::string_view toText(IdleCause cause);
/// Says why a device idles, by the cause as trace.db and the JSON name it ("late_launch": "the host launches
/// late").
std::string_view inWords(std::string_view idleCause);

struct IdleGap {
    int64_t id = 0;  // row of idle_gap: numbered over all ranks when they are gathered (job/analysis.cpp)
    int step = 0;    // its number
    int64_t startNs = 0;
    int64_t durNs = 0;
    IdleCause cause = IdleCause::other;
};

/// Says what a host was in longest in some time, innermost: an operation, a range or a call.
struct HostDoing {
    int32_t nameId = 0;  // 0: nothing that is recorded
    int64_t ns = 0;
};

/// Says why a device stood still, and which call is to blame.
struct IdleVerdict {
    IdleCause cause = IdleCause::other;
    int64_t blockedUntilNs = INT64_MIN;  // end of the call that had to wait for the device first; INT64_MIN: none did
    int64_t callId = 0;                  // row of api_call that is to blame; 0: none
    int32_t callNameId = 0;
    int32_t rangeNameId = 0;    // innermost host range in which the blame lies; 0: none
    bool pageableCopy = false;  // the call to blame copied from or to pageable memory
    bool copyToDevice = false;  // the call to blame waited for a copy to the device (HostCall::copyToDevice)
    int64_t submissionId = 0;   // row of api_call that put the work on the device which ended it; 0: unknown
    HostDoing doing;            // what the host did instead, where it was late for long
};

/// Records a time in which the host kept the device from computing (hostStalls()).
struct HostStall : IdleVerdict {
    int step = -1;  // its number; -1 in warm-up
    int64_t startNs = 0;
    int64_t endNs = 0;
    int64_t stallNs = 0;   // end - start without waiting for other ranks
    int64_t pausedNs = 0;  // of it, in which the host stood still (HostPause)
};

/// Records a copy over 64 KiB from or to pageable memory.
struct PageableCopy {
    int64_t id = 0;  // row of memcpy
    int64_t bytes = 0;
};

/// Sums up copies over 64 KiB between host and device in one step; smaller ones are staged at once, from whatever
/// memory.
struct CopyUse {
    int32_t count = 0;
    int32_t blocking = 0;  // of them: the call returned only when the copy was done
    int64_t bytes = 0;
    int64_t deviceNs = 0;
    int64_t exposedNs = 0;    // no kernel ran meanwhile
    int64_t uncoveredNs = 0;  // nothing was computed meanwhile: exposed, or beside communication
    int64_t longestNs = 0;
    int64_t longestId = 0;  // row of memcpy
};

/// Says what the host asked of the allocator and the copy engine in one analysed step.
struct HostUse {
    int step = 0;
    int32_t allocatorCalls = 0;
    int64_t allocatorNs = 0;
    CopyUse pageable, pinned;
    std::vector<PageableCopy> pageableCopies;  // by start
};

/// Records a time in which the host stood still inside an operation or a call that usually takes microseconds
/// (hostPauses()).
struct HostPause {
    int step = -1;  // its number; -1 in warm-up and outside
    int64_t startNs = 0;
    int64_t endNs = 0;
    int64_t ownNs = 0;    // of it, in nothing else that is recorded
    int64_t usualNs = 0;  // median duration of the operations or calls of that name
    int32_t nameId = 0;
    bool call = false;  // id is a row of api_call; else of nvtx
    int64_t id = 0;
};

struct RankSummary {
    int rank = 0;
    std::vector<Attribution> steps;         // one per RankFacts::steps
    std::vector<KernelStatistics> kernels;  // by (key, step)
    std::vector<CommTask> communication;    // by start
    std::vector<NetworkSend> networkSends;  // by time
    std::vector<IdleGap> idleGaps;          // those worth a row: kShortestGapNs and longer
    std::vector<int64_t> idleByCauseNs;     // of analysed steps, by IdleCause
    std::vector<HostStall> hostStalls;      // by start
    std::vector<HostPause> hostPauses;      // by start
    std::vector<HostUse> hostUse;           // by step
    std::vector<int> lostSteps;             // numbers of steps in which device records are missing
    bool hostIsKnown = false;               // calls of the host are recorded: without them its causes are 'other'
    Contention contention;                  // of compute with communication
    int32_t computeStreamId = 0;            // the stream with most compute time
    MemoryPeaks memory;                     // of the whole recording
    ActivityLine activity;                  // of the whole recording, for the timeline

    // Shorter gaps are launch gaps between dependent kernels; summed up, not stored.
    static constexpr int64_t kShortestGapNs = 10'000;
};

/// Runs phase 1 for one rank. `events` is taken apart.
RankSummary summarize(RankEvents events, const RankFacts& facts);

/// The ranks that left something, by rank.
std::vector<const RankFacts*> recordedRanks(const TraceFacts& facts);

/// Summarizes these ranks. `workers` threads (0: one per core) each hold one rank's events at a time and read through
/// their own connection. An error of a worker is thrown here. `visit` sees the events of each rank before they are
/// taken apart, `take` gets its summary: called by the workers, several at a time, each rank once, and begun in
/// this order.
void summarizeRanks(const std::filesystem::path& trace, const TraceFacts& facts,
                    const std::vector<const RankFacts*>& ranks, unsigned workers,
                    const std::function<void(const RankEvents&)>& visit, const std::function<void(RankSummary)>& take);

/// For messages between processes (collector/team/packing.h).
template <typename Visit>
void forEachField(HostUse& value, const Visit& visit) {
    auto& [step, allocatorCalls, allocatorNs, pageable, pinned, pageableCopies] = value;
    visit(step, allocatorCalls, allocatorNs, pageable, pinned, pageableCopies);
}

template <typename Visit>
void forEachField(RankSummary& value, const Visit& visit) {
    auto& [rank, steps, kernels, communication, networkSends, idleGaps, idleByCauseNs, hostStalls, hostPauses, hostUse,
           lostSteps, hostIsKnown, contention, computeStreamId, memory, activity] = value;
    visit(rank, steps, kernels, communication, networkSends, idleGaps, idleByCauseNs, hostStalls, hostPauses, hostUse,
          lostSteps, hostIsKnown, contention, computeStreamId, memory, activity);
}

}  // namespace rankscope::facts

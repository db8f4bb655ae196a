// SPDX-License-Identifier: Apache-2.0
// Finds when the data of a collective were there: events say which work a communication stream waits for
// (cudaEventRecord on the stream that does it, cudaStreamWaitEvent on its own). A kernel that starts well after that
// work has ended, and right after its own call, was held up by the host. A stream that runs nothing hands on what it
// waits for: NCCL orders the kernels of a communicator by way of one, whatever streams they are on.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzer/facts/rank_events.h"

namespace rankscope::facts {
namespace {

/// Says that a stream waits for what another one had been given when an event was recorded. Times are those of the host
/// calls.
struct StreamWait {
    int32_t streamId = 0;
    int64_t waitedNs = 0;
    int32_t recordedStreamId = 0;
    int64_t recordedNs = 0;
};

/// Holds the kernels of one stream by the time of their launch: streams run them in that order.
using Launched = std::vector<std::pair<int64_t, int64_t>>;  // launch, latest end so far

/// Holds the host's calls by correlation.
using Calls = std::unordered_map<int64_t, const HostCall*>;

std::map<int32_t, Launched> launchedByStream(const RankEvents& events, const Calls& calls) {
    std::map<int32_t, Launched> streams;
    for (const ComputeTask& task : events.compute)
        if (const auto launch = calls.find(task.correlation); launch != calls.end() && launch->second->submits())
            streams[task.streamId].emplace_back(launch->second->startNs, task.endNs);
    for (auto& [stream, kernels] : streams) {
        std::ranges::sort(kernels);
        for (size_t i = 1; i < kernels.size(); ++i)
            kernels[i].second = std::max(kernels[i].second, kernels[i - 1].second);
    }
    return streams;
}

/// Returns the end of what a stream had been given at that time; the time itself when that is done or unknown.
int64_t doneNs(const std::map<int32_t, Launched>& streams, int32_t stream, int64_t recordedNs) {
    const auto found = streams.find(stream);
    if (found == streams.end()) return recordedNs;
    const auto after = std::lower_bound(found->second.begin(), found->second.end(), std::pair(recordedNs, INT64_MIN));
    return after == found->second.begin() ? recordedNs : std::max(recordedNs, (after - 1)->second);
}

/// Returns all stream waits of a rank whose event's record is known, by waitedNs.
std::vector<StreamWait> streamWaits(const RankEvents& events, const Calls& calls) {
    const auto callNs = [&](int64_t correlation) -> int64_t {
        const auto call = calls.find(correlation);
        return call == calls.end() ? -1 : call->second->startNs;
    };
    std::unordered_map<int64_t, std::vector<std::pair<int64_t, int32_t>>> records;  // event: (call, stream)
    for (const EventRecord& row : events.eventRecords)
        if (const int64_t ns = callNs(row.correlation); ns >= 0) records[row.eventId].emplace_back(ns, row.streamId);
    for (auto& [event, times] : records) std::ranges::sort(times);
    std::vector<StreamWait> waits;
    for (const SynchronizationRecord& row : events.synchronizations) {
        const int64_t ns = callNs(row.correlation);
        if (row.kind != SynchronizationRecord::Kind::streamWaitEvent || row.streamId == 0 || row.eventId < 0 || ns < 0)
            continue;
        const auto event = records.find(row.eventId);
        if (event == records.end()) continue;
        // It waits for the event's last record before this call.
        const auto after = std::upper_bound(event->second.begin(), event->second.end(), std::pair(ns, INT32_MAX));
        if (after != event->second.begin())
            waits.push_back({row.streamId, ns, (after - 1)->second, (after - 1)->first});
    }
    std::ranges::stable_sort(waits, {}, &StreamWait::waitedNs);
    return waits;
}

/// Holds the waits of the streams that run nothing, by stream and the stream that they wait for.
class HandedOn {
  public:
    HandedOn(const RankEvents& events, const std::vector<StreamWait>& waits) {
        std::set<int32_t> busy;
        for (const ComputeTask& task : events.compute) busy.insert(task.streamId);
        for (const CommTask& task : events.communication) busy.insert(task.streamId);
        for (const MemoryTask& task : events.memory) busy.insert(task.streamId);
        for (const StreamWait& wait : waits) {
            if (busy.count(wait.streamId) == 0) m_waits[wait.streamId][wait.recordedStreamId].push_back(&wait);
            if (busy.count(wait.recordedStreamId) == 0) m_waits.try_emplace(wait.recordedStreamId);
        }
    }

    /// Calls visit(stream, recordedNs) for each stream with work that `wait` is for; not for the stream that waits,
    /// whose order is its own.
    template <typename Visit>
    void forEachSource(const StreamWait& wait, const Visit& visit) const {
        std::set<int32_t> seen{wait.streamId};
        follow(wait.recordedStreamId, wait.recordedNs, seen, visit);
    }

  private:
    template <typename Visit>
    void follow(int32_t stream, int64_t recordedNs, std::set<int32_t>& seen, const Visit& visit) const {
        if (!seen.insert(stream).second) return;
        const auto handing = m_waits.find(stream);
        if (handing == m_waits.end()) return visit(stream, recordedNs);
        for (const auto& [source, waits] : handing->second) {
            // The last one before the record holds all that those before it wait for.
            const auto after = std::ranges::upper_bound(waits, recordedNs, {}, &StreamWait::waitedNs);
            if (after != waits.begin()) follow(source, (*(after - 1))->recordedNs, seen, visit);
        }
    }

    std::map<int32_t, std::map<int32_t, std::vector<const StreamWait*>>> m_waits;
};

}  // namespace

void findReadyTimes(RankEvents& events) {
    Calls calls;
    for (const HostCall& call : events.hostCalls)
        if (call.correlation >= 0) calls.emplace(call.correlation, &call);
    const std::vector<StreamWait> waits = streamWaits(events, calls);
    if (waits.empty()) return;
    const std::map<int32_t, Launched> streams = launchedByStream(events, calls);
    const HandedOn handedOn(events, waits);
    std::map<int32_t, std::vector<const StreamWait*>> waitsOf;
    for (const StreamWait& wait : waits) waitsOf[wait.streamId].push_back(&wait);
    struct Before {
        size_t nextWait = 0;
        int64_t readyNs = -1;
        int64_t endNs = -1;
    };
    std::map<int32_t, Before> before;
    for (CommTask& task : events.communication) {
        const auto found = waitsOf.find(task.streamId);
        if (found == waitsOf.end() || task.launchNs < 0) continue;
        Before& last = before[task.streamId];
        const std::vector<const StreamWait*>& mine = found->second;
        int64_t readyNs = -1;
        for (; last.nextWait < mine.size() && mine[last.nextWait]->waitedNs <= task.launchNs; ++last.nextWait)
            handedOn.forEachSource(*mine[last.nextWait], [&](int32_t stream, int64_t recordedNs) {
                readyNs = std::max(readyNs, doneNs(streams, stream, recordedNs));
            });
        if (readyNs < 0 && last.readyNs >= 0) readyNs = task.launchNs <= last.endNs ? last.readyNs : last.endNs;
        if (readyNs >= 0) task.readyNs = std::min(std::max(readyNs, last.readyNs), task.startNs);
        last.readyNs = task.readyNs;
        last.endNs = task.endNs;
    }
}

}  // namespace rankscope::facts

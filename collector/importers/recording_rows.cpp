// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/recording_rows.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace rankscope::collector {

namespace {

/// Calls `visit` with every list of timed rows.
template <typename Recording, typename Visit>
void forEachTimedList(Recording& recording, Visit visit) {
    visit(recording.kernels);
    visit(recording.memcpys);
    visit(recording.memsets);
    visit(recording.apiCalls);
    visit(recording.synchronizations);
    visit(recording.nvtx);
    visit(recording.ncclCalls);
}

}  // namespace

std::optional<uint32_t> correlationOf(std::optional<int64_t> value) {
    if (!value || *value < 0 || *value > std::numeric_limits<uint32_t>::max()) return std::nullopt;
    return static_cast<uint32_t>(*value);
}

void setDepths(RankRecording& recording) {
    const auto endOf = [](const store::NvtxRange& range) {
        return range.durNs ? range.startNs + *range.durNs : std::numeric_limits<int64_t>::max();
    };
    std::vector<store::NvtxRange*> ranges;
    for (store::NvtxRange& range : recording.nvtx) {
        if (range.threadId) ranges.push_back(&range);
    }
    std::stable_sort(ranges.begin(), ranges.end(), [&](const store::NvtxRange* a, const store::NvtxRange* b) {
        if (*a->threadId != *b->threadId) return *a->threadId < *b->threadId;
        if (a->startNs != b->startNs) return a->startNs < b->startNs;
        return endOf(*a) > endOf(*b);
    });
    std::vector<int64_t> openEnds;
    std::optional<int32_t> thread;
    for (store::NvtxRange* range : ranges) {
        if (thread != range->threadId) openEnds.clear();
        thread = range->threadId;
        const int64_t end = endOf(*range);
        while (!openEnds.empty() && (openEnds.back() <= range->startNs || openEnds.back() < end)) openEnds.pop_back();
        range->depth = static_cast<int32_t>(openEnds.size());
        openEnds.push_back(end);
    }
}

void shiftTimes(RankRecording& recording, int64_t byNs) {
    forEachTimedList(recording, [byNs](auto& rows) {
        for (auto& row : rows) row.startNs += byNs;
    });
    for (store::CudaEvent& event : recording.cudaEvents) event.timeNs += byNs;
    for (store::Counter& counter : recording.counters) counter.timeNs += byNs;
}

void moveTimes(RankRecording& recording, const ClockLine& clock) {
    forEachTimedList(recording, [&clock](auto& rows) {
        for (auto& row : rows) {
            const int64_t startNs = clock.moved(row.startNs);
            if constexpr (std::is_same_v<decltype(row.durNs), int64_t>) {
                row.durNs = clock.moved(row.startNs + row.durNs) - startNs;
            } else if (row.durNs) {
                row.durNs = clock.moved(row.startNs + *row.durNs) - startNs;
            }
            row.startNs = startNs;
        }
    });
    for (store::CudaEvent& event : recording.cudaEvents) event.timeNs = clock.moved(event.timeNs);
    for (store::Counter& counter : recording.counters) counter.timeNs = clock.moved(counter.timeNs);
}

std::optional<int64_t> earliestNs(const RankRecording& recording) {
    std::optional<int64_t> earliest;
    forEachTimedList(recording, [&earliest](const auto& rows) {
        for (const auto& row : rows) earliest = std::min(earliest.value_or(row.startNs), row.startNs);
    });
    return earliest;
}

uint64_t sizeInMemory(const RankRecording& recording) {
    uint64_t bytes = 0;
    forEachTimedList(recording, [&bytes](const auto& rows) { bytes += rows.capacity() * sizeof(rows[0]); });
    bytes += recording.cudaEvents.capacity() * sizeof(store::CudaEvent);
    bytes += recording.counters.capacity() * sizeof(store::Counter);
    return bytes;
}

}  // namespace rankscope::collector

// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/recording_rows.h"

#include <algorithm>

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

void shiftTimes(RankRecording& recording, int64_t byNs) {
    forEachTimedList(recording, [byNs](auto& rows) {
        for (auto& row : rows) row.startNs += byNs;
    });
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
    return bytes;
}

}  // namespace rankscope::collector

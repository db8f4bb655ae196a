// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_file.h"

#include <algorithm>
#include <string>

#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/kineto_rank.h"
#include "collector/importers/kineto_reader.h"

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

KinetoFile readKinetoFile(const std::filesystem::path& file, std::optional<int32_t> fallbackRank) {
    KinetoFile result;
    InputFile input(file);
    KinetoReader reader(input, result.losses);
    KinetoRank rank;
    reader.read([&rank](const KinetoEvent& event) { rank.add(event); });
    if (!reader.sawEvents()) {
        throw ImportError(file, 0, "this JSON document holds no \"traceEvents\"",
                          "expected a PyTorch (Kineto) or Chrome trace");
    }
    result.header = reader.header();
    result.events = reader.eventCount();
    result.recording = rank.finish(result.header, fallbackRank, result.losses);
    const RankRecording& recording = result.recording;
    if (recording.kernels.empty() && recording.apiCalls.empty() && recording.nvtx.empty() &&
        recording.memcpys.empty()) {
        std::string cause =
            "none of its " + std::to_string(result.events) + " events is GPU work, a CUDA or HIP call or an annotation";
        for (const ImportLoss& loss : result.losses.all()) {
            if (loss.severity == "error")
                cause += "; at offset " + std::to_string(loss.offset.value_or(0)) + " " + loss.message;
        }
        throw ImportError(file, 0, cause, "record with torch.profiler and ProfilerActivity.CUDA");
    }
    return result;
}

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

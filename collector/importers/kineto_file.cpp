// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_file.h"

#include <string>

#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/kineto_rank.h"
#include "collector/importers/kineto_reader.h"
#include "collector/importers/rank_of_file.h"
#include "collector/importers/readers.h"

namespace rankscope::collector {

namespace {

/// Any JSON document: what it lacks of a trace is told where it is read.
bool isJson(std::string_view head) {
    head = withoutLeadingSpace(head);
    return head.starts_with('[') || head.starts_with('{');
}

}  // namespace

const Reader kKinetoReader{
    .name = "kineto",
    .expected = "a PyTorch (Kineto) or Chrome trace",
    .endings = {".json", ".json.gz"},
    .timeBase = "baseTimeNanoseconds",
    .recognises = isJson,
    .read = [](const std::filesystem::path& file,
               const std::function<void(FileRank)>& take) { take(readKinetoFile(file)); },
};

FileRank readKinetoFile(const std::filesystem::path& file) {
    FileRank result;
    InputFile input(file);
    KinetoReader reader(input, result.losses);
    KinetoRank rank;
    reader.read([&rank](const KinetoEvent& event) { rank.add(event); });
    if (!reader.sawEvents()) {
        throw ImportError(file, 0, "this JSON document holds no \"traceEvents\"",
                          "expected a PyTorch (Kineto) or Chrome trace");
    }
    const KinetoHeader& header = reader.header();
    result.header = {header.rank, header.worldSize, header.baseTimeNs};
    result.events = reader.eventCount();
    result.recording = rank.finish(header, rankFromFileName(file.filename().string()), result.losses);
    const RankRecording& recording = result.recording;
    if (recording.kernels.empty() && recording.apiCalls.empty() && recording.nvtx.empty() &&
        recording.memcpys.empty()) {
        std::string cause =
            "none of its " + std::to_string(result.events) + " events is GPU work, a CUDA or HIP call or an annotation";
        for (const ImportLoss& loss : result.losses.all()) {
            if (loss.severity == "error")
                cause += "; at offset " + std::to_string(loss.offset.value_or(0)) + " " + loss.message;
        }
        throw ImportError(file, 0, cause,
                          "record with torch.profiler and ProfilerActivity.CUDA; events of other programs are read "
                          "with a mapping: rankscope import --map MAPPING FILES");
    }
    return result;
}

}  // namespace rankscope::collector

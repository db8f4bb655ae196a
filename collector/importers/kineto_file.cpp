// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/kineto_file.h"

#include <string>

#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/kineto_parts.h"
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

bool isEmpty(const RankRecording& recording) {
    return recording.kernels.empty() && recording.apiCalls.empty() && recording.nvtx.empty() &&
           recording.memcpys.empty();
}

void refuse(const std::filesystem::path& file, uint64_t events, const ImportLosses& losses) {
    std::string cause =
        "none of its " + std::to_string(events) + " events is GPU work, a CUDA or HIP call or an annotation";
    for (const ImportLoss& loss : losses.all())
        if (loss.severity == "error")
            cause += "; at offset " + std::to_string(loss.offset.value_or(0)) + " " + loss.message;
    throw ImportError(file, 0, cause,
                      "record with torch.profiler and ProfilerActivity.CUDA; events of other programs are read "
                      "with a mapping: rankscope import --map MAPPING FILES");
}

/// Reads the file once more, for those who know already what stands in it.
KinetoHeader readAgain(const std::filesystem::path& file, const KinetoReader::EventSink& sink) {
    InputFile input(file);
    ImportLosses told;  // when it was read first
    KinetoReader reader(input, told);
    reader.read(sink);
    return reader.header();
}

void takeParts(const std::filesystem::path& file, const ReadOptions& options, const KinetoParts& parts, FileRank first,
               const std::function<void(FileRank)>& take) {
    std::vector<KinetoRank> ranks(parts.count());
    std::vector<uint64_t> events(parts.count(), 0);
    int64_t ofNone = 0;
    KinetoHeader header = readAgain(file, [&](const KinetoEvent& event) {
        const std::optional<size_t> part = parts.partOf(event);
        if (!part) {
            ofNone += event.category != KinetoCategory::metadata;
            return;
        }
        ++events[*part];
        ranks[*part].add(event);
    });
    if (ofNone > 0)
        first.losses.add("source_absent", "info", std::nullopt,
                         "the file was merged from those of several ranks; events of which nothing tells the rank are "
                         "left out",
                         ofNone);
    for (size_t part = 0; part < parts.count(); ++part) {
        FileRank read;
        if (part == 0) read.losses = first.losses;  // of the file, and told once
        header.rank = parts.rankOf(part);           // the header is one of the merged files'
        read.header = {header.rank, header.worldSize, header.baseTimeNs};
        read.events = events[part];
        read.recording = ranks[part].finish(header, std::nullopt, options, read.losses);
        if (!isEmpty(read.recording)) take(std::move(read));
    }
}

}  // namespace

const Reader kKinetoReader{
    .name = "kineto",
    .expected = "a PyTorch (Kineto) or Chrome trace",
    .endings = {".json", ".json.gz"},
    .timeBase = "baseTimeNanoseconds",
    .recognises = isJson,
    .read = readKinetoFile,
};

void readKinetoFile(const std::filesystem::path& file, const ReadOptions& options,
                    const std::function<void(FileRank)>& take) {
    FileRank result;
    InputFile input(file);
    KinetoReader reader(input, result.losses);
    KinetoRank rank;
    KinetoParts parts;
    reader.read([&](const KinetoEvent& event) {
        rank.add(event);
        parts.see(event);
    });
    if (!reader.sawEvents()) {
        throw ImportError(file, 0, "this JSON document holds no \"traceEvents\"",
                          "expected a PyTorch (Kineto) or Chrome trace");
    }
    if (parts.maySplit()) {
        readAgain(file, [&parts](const KinetoEvent& event) { parts.vote(event); });
        if (parts.split()) {
            rank = KinetoRank();
            return takeParts(file, options, parts, std::move(result), take);
        }
    }
    const KinetoHeader& header = reader.header();
    result.header = {header.rank, header.worldSize, header.baseTimeNs};
    result.events = reader.eventCount();
    result.recording = rank.finish(header, rankFromFileName(file.filename().string()), options, result.losses);
    if (isEmpty(result.recording)) refuse(file, result.events, result.losses);
    take(std::move(result));
}

}  // namespace rankscope::collector

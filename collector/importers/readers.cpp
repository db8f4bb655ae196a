// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/readers.h"

#include <array>
#include <string>
#include <string_view>

#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"

namespace rankscope::collector {

namespace {

// The first that recognises a file reads it. Kineto's stands last: it takes every JSON document that nobody else knows.
constexpr std::array kReaders{&kFlightRecorderReader, &kRocpdReader,        &kNsysReader,
                              &kInspectorReader,      &kExportReader,       &kRocprofReader,
                              &kXplaneReader,         &kNcclProfilerReader, &kKinetoReader};

constexpr size_t kProbeBytes = 64 * 1024;

/// A format that is known and not read.
struct KnownFormat {
    bool (*recognises)(std::string_view head);
    const char* cause;
    const char* hint;
};

bool isCapture(std::string_view head) {
    return head.starts_with("RANKSCAP");
}

bool isNsysReport(std::string_view head) {
    return head.starts_with("NVTXT") || head.starts_with("QDSTREAM") || head.starts_with("\x1b\x01nsys");
}

bool holds(std::string_view head, const char* text) {
    return head.find(text) != std::string_view::npos;
}

/// Its first line, or a table's columns: a log of NCCL's may put either far from the other.
bool isNcclTests(std::string_view head) {
    return (holds(head, "# nThread ") && holds(head, " minBytes ")) ||
           (holds(head, "out-of-place") && holds(head, "busbw"));
}

bool isPrimusPipeline(std::string_view head) {
    return holds(head, "\"fwd_start\"") && holds(head, "\"fwd_end\"");
}

// Asked before the readers.
constexpr std::array kNotRead{
    KnownFormat{isNsysReport, "this is a report of Nsight Systems, which only its own tools read",
                "export it and import that: nsys export --type sqlite --include-blobs true FILE"},
    KnownFormat{isNcclTests, "this is the output of nccl-tests: what links can do, and no run",
                "tell it of a run: `rankscope analyze NAME --links-table FILE[:OPERATION]`, `rankscope recommend NAME "
                "--evidence FILE[:OPERATION]`"},
    KnownFormat{isPrimusPipeline, "these are Primus' times of a pipeline, which tell ranks by the names of their files",
                "name how they are read: rankscope import --map primus-pipeline FILES"},
    KnownFormat{isCapture, "this is a capture file of Rankscope itself",
                "use `rankscope collect` on its run directory"},
};

/// "a PyTorch (Kineto) or Chrome trace is expected, .json or .json.gz".
std::string whatIsExpected(std::span<const Reader* const> among) {
    std::string text;
    for (const Reader* reader : among) {
        text += (text.empty() ? "" : ", or ") + std::string(reader->expected) + (text.empty() ? " is expected" : "");
        for (const std::string_view ending : reader->endings)
            text += (ending == reader->endings.front() ? ", " : " or ") + std::string(ending);
    }
    return text;
}

}  // namespace

std::span<const Reader* const> readers() {
    return kReaders;
}

const Reader& readerOf(const std::filesystem::path& file, std::span<const Reader* const> among) {
    InputFile input(file);
    std::string head(kProbeBytes, '\0');
    head.resize(input.read(head.data(), head.size()));
    if (head.empty()) throw ImportError(file, 0, input.damage().empty() ? "the file is empty" : input.damage(), "");
    if (withoutLeadingSpace(head).empty()) throw ImportError(file, head.size(), "the file holds white space only", "");
    for (const KnownFormat& format : kNotRead)
        if (format.recognises(head)) throw ImportError(file, 0, format.cause, format.hint);
    for (const Reader* reader : among)
        if (reader->recognises(head) && (reader->holds == nullptr || reader->holds(file))) return *reader;
    throw ImportError(file, 0, "the format is not known", whatIsExpected(among));
}

}  // namespace rankscope::collector

// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/trace_format.h"

#include <string>
#include <string_view>

#include "collector/importers/import_error.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"

namespace rankscope::collector {

namespace {
constexpr size_t kProbeBytes = 64 * 1024;
}

TraceFormat detectFormat(const std::filesystem::path& file) {
    InputFile input(file);
    std::string head(kProbeBytes, '\0');
    head.resize(input.read(head.data(), head.size()));
    if (head.empty()) throw ImportError(file, 0, input.damage().empty() ? "the file is empty" : input.damage(), "");
    std::string_view text = head;
    const auto starts = [&text](std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; };
    if (starts(std::string_view("SQLite format 3\0", 16))) return TraceFormat::nsysSqlite;
    if (starts("RANKSCAP")) return TraceFormat::captureFile;
    if (starts("NVTXT") || starts("QDSTREAM") || starts(std::string_view("\x1b\x01nsys", 6)))
        return TraceFormat::nsysReport;
    // A pickle of protocol 2 or later, which torch writes for the flight recorder.
    if (text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) return TraceFormat::flightRecorderPickle;
    if (starts("\xef\xbb\xbf")) text.remove_prefix(3);
    while (!text.empty() && isJsonSpace(text.front())) text.remove_prefix(1);
    if (text.empty()) throw ImportError(file, head.size(), "the file holds white space only", "");
    if (text.front() == '[') return TraceFormat::kineto;
    if (text.front() != '{') return TraceFormat::unknown;
    // Flight-recorder dumps in JSON start with a version and the process groups, or with the entries.
    const bool trace = text.find("\"traceEvents\"") != std::string_view::npos ||
                       text.find("\"schemaVersion\"") != std::string_view::npos;
    const bool dump = text.find("\"pg_config\"") != std::string_view::npos &&
                      (starts("{\"version\"") || text.find("\"entries\"") != std::string_view::npos);
    return dump && !trace ? TraceFormat::flightRecorder : TraceFormat::kineto;
}

}  // namespace rankscope::collector

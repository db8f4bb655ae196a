// SPDX-License-Identifier: Apache-2.0
// Rankscope's own exports (rankscope export --to chrome or perfetto): the run that they were made of, as far as events
// tell it.
#include <filesystem>
#include <functional>
#include <string_view>

#include "collector/importers/exported_run.h"
#include "collector/importers/input_file.h"
#include "collector/importers/json_scan.h"
#include "collector/importers/readers.h"

namespace rankscope::collector {

namespace {

bool headHolds(std::string_view head, std::string_view text) {
    return head.find(text) != std::string_view::npos;
}

/// Perfetto's packets have the tag 10; the first of an export tells the run under this name.
bool isProtobuf(std::string_view head) {
    return head.starts_with('\x0a') && headHolds(head.substr(0, 256), "rankscope_run");
}

bool isOwnExport(std::string_view head) {
    if (isProtobuf(head)) return true;
    const size_t at = head.find("\"otherData\"");
    return at != std::string_view::npos && withoutLeadingSpace(head).starts_with('{') &&
           headHolds(head.substr(at, 256), "\"tool\"") && headHolds(head.substr(at, 256), "\"rankscope\"");
}

void readExport(const std::filesystem::path& file, const std::function<void(FileRank)>& take) {
    char first = 0;
    InputFile(file).read(&first, 1);
    first == '\x0a' ? readExportedPerfetto(file, take) : readExportedChrome(file, take);
}

}  // namespace

const Reader kExportReader{
    .name = "export",
    .expected = "an export of Rankscope",
    .endings = {".pftrace", ".pftrace.gz", ".perfetto-trace", ".json", ".json.gz"},
    .recognises = isOwnExport,
    .read = [](const std::filesystem::path& file, const ReadOptions&,
               const std::function<void(FileRank)>& take) { readExport(file, take); },
};

}  // namespace rankscope::collector

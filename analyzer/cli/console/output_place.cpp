// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/output_place.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "analyzer/cli/console/errors.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/text/shell_word.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

bool isSameFile(const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    return fs::equivalent(a, b, ignored);
}

/// Whether `output` is read when the user names `input`: itself, a run's database or one of its captures, a file of a
/// baseline.
bool isReadFrom(const fs::path& output, const fs::path& input) {
    if (isSameFile(output, input)) return true;
    std::error_code ignored;
    const fs::path folder = fs::is_directory(input, ignored) ? input
                            : input.filename() == "trace.db" ? fs::absolute(input).parent_path()
                                                             : fs::path();
    if (folder.empty()) return false;
    if (isSameFile(output, folder / "trace.db") || isSameFile(fs::absolute(output).parent_path(), folder / "capture"))
        return true;
    if (fs::exists(folder / "trace.db", ignored) || fs::exists(folder / "capture", ignored)) return false;
    for (const fs::path& file : compare::baselineFiles(folder))
        if (isSameFile(output, file)) return true;
    return false;
}

}  // namespace

void checkOutput(const std::string& output, const std::vector<std::string>& inputs) {
    if (output == "-") return;  // stdout
    std::error_code ignored;
    if (fs::is_directory(output, ignored))
        throw VerbError(kExitInput, fmt::format("cannot write {}: it is a folder", output), "name a file in it");
    const fs::path folder = fs::path(output).parent_path();
    if (!folder.empty() && fs::status(folder, ignored).type() == fs::file_type::not_found)
        throw VerbError(kExitInput, fmt::format("cannot write {}: there is no folder {}", output, folder.string()),
                        "mkdir -p " + text::shellWord(folder.string()));
    if (!fs::is_regular_file(output, ignored)) return;
    for (const std::string& input : inputs)
        if (isReadFrom(output, input))
            throw VerbError(kExitUsage,
                            fmt::format("{} is what is read{}: it would be replaced", output,
                                        input == output ? "" : " for " + input),
                            "choose another file for the result");
}

void requireDifferentFiles(const std::vector<std::string>& outputs) {
    std::set<fs::path> seen;
    for (const std::string& output : outputs) {
        std::error_code ignored;
        if (fs::exists(output, ignored) && !fs::is_regular_file(output, ignored)) continue;
        const fs::path file = fs::weakly_canonical(fs::absolute(output), ignored);
        if (!seen.insert(file.empty() ? fs::path(output) : file).second)
            throw VerbError(kExitUsage, fmt::format("{} is written twice: the second would replace the first", output),
                            "give each format a file of its own");
    }
}

}  // namespace rankscope::cli

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/file_places.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "analyzer/cli/console/errors.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/text/output_file.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/error.h"
#include "collector/store/input_text.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

bool isSameFile(const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    return fs::equivalent(a, b, ignored);
}

/// Tells whether `output` is read when the user names `input`: itself, a run's database or one of its captures, a file
/// of a baseline.
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

std::string obstacleAt(const fs::path& place) {
    std::error_code error;
    const fs::file_type type = fs::status(place, error).type();
    const auto unreadable = [](int code) {
        return fmt::format("cannot be read: {}", std::generic_category().message(code));
    };
    if (type == fs::file_type::not_found && error != std::errc::not_a_directory)
        return fs::is_symlink(fs::symlink_status(place, error)) ? "is a link to nothing" : "";
    if (type == fs::file_type::not_found) return unreadable(ENOTDIR);
    if (type == fs::file_type::none) return unreadable(error.value());  // a loop of links, a closed folder above it
    if (type == fs::file_type::fifo) return "is a pipe";
    if (type == fs::file_type::socket) return "is a socket";
    if (type != fs::file_type::regular && type != fs::file_type::directory) return "is a device";
    return access(place.c_str(), type == fs::file_type::regular ? R_OK : X_OK) == 0 ? "" : unreadable(errno);
}

void checkOutput(const std::string& output, const std::vector<std::string>& inputs) {
    if (output.empty() || output == "-") return;  // stdout
    std::error_code ignored;
    if (fs::is_directory(output, ignored))
        throw VerbError(kExitInput, fmt::format("cannot write {}: it is a folder", output), "name a file in it");
    const fs::path folder = fs::path(output).parent_path();
    if (!folder.empty() && fs::status(folder, ignored).type() == fs::file_type::not_found)
        throw VerbError(kExitInput, fmt::format("cannot write {}: there is no folder {}", output, folder.string()),
                        "mkdir -p " + text::shellWord(folder.string()));
    for (const std::string& input : inputs)
        if (fs::is_regular_file(output, ignored) && isReadFrom(output, input))
            throw VerbError(kExitUsage,
                            fmt::format("{} is what is read{}: it would be replaced", output,
                                        input == output ? "" : " for " + input),
                            "choose another file for the result");
    for (const std::string& input : inputs)
        if (fs::path(output).extension() == ".json" && fs::is_directory(input, ignored) &&
            fs::equivalent(folder.empty() ? "." : folder, input, ignored))
            throw VerbError(kExitUsage, fmt::format("{} would be read as a run of {}", output, input),
                            "choose another folder for the result");
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

std::string readFile(const fs::path& file) {
    try {
        return store::readInputText(file);
    } catch (const store::Error& error) {
        throw VerbError(kExitInput, fmt::format("{} {}", error.file(), error.cause()), error.hint());
    }
}

void giveResult(const std::string& text, const std::string& file, const Console& console) {
    if (file.empty())
        console.result(text);
    else
        text::writeOutputFile(text, file);
}

}  // namespace rankscope::cli

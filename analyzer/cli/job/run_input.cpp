// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/run_input.h"

#include <fmt/format.h>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/obstacle.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

RunInput findRun(const std::string& name) {
    const fs::path path = name;
    std::error_code ignored;
    if (const std::string obstacle = obstacleAt(path); !obstacle.empty())
        throw VerbError(kExitInput, fmt::format("{} {}", name, obstacle),
                        "give a run's name, its directory or its .db file");
    if (fs::is_regular_file(path, ignored)) {
        RunInput input;
        input.database = path;
        // NAME/trace.db is the same run as NAME, so that it is collected anew when its captures are.
        const fs::path folder = fs::absolute(path).parent_path();
        if (path.filename() == "trace.db" && fs::is_directory(folder / "capture", ignored)) {
            input.directory = folder;
            input.captures = folder / "capture";
        }
        return input;
    }
    if (!fs::is_directory(path, ignored))
        throw VerbError(kExitInput, fmt::format("there is no run {}", name),
                        "give a run's name, its directory or its .db file; `rankscope run -o NAME -- CMD` makes one");
    RunInput input;
    input.directory = fs::absolute(path).lexically_normal();
    if (!input.directory.has_filename()) input.directory = input.directory.parent_path();
    input.database = path / "trace.db";
    if (fs::is_directory(path / "capture", ignored)) input.captures = path / "capture";
    if (input.captures.empty() && !fs::exists(input.database, ignored))
        throw VerbError(kExitInput, fmt::format("{} is not a run: it has neither trace.db nor a capture folder", name));
    return input;
}

bool needsCollecting(const RunInput& input) {
    std::error_code ignored;
    if (!fs::exists(input.database, ignored)) return true;
    if (input.captures.empty()) return false;
    const auto collected = fs::last_write_time(input.database, ignored);
    for (const auto& entry : fs::directory_iterator(input.captures, ignored))
        if (entry.last_write_time(ignored) > collected) return true;
    return false;
}

}  // namespace rankscope::cli

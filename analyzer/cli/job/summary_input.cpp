// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/summary_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/progress.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

/// Tells whether it is what a folder has that is kept in a repository for runs to come.
bool isPlaceholder(const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    return entry.is_regular_file(ignored) && (name.starts_with('.') || name.starts_with("README"));
}

bool holdsPlaceholdersOnly(const fs::path& folder) {
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    return !error && std::all_of(begin(entries), end(entries), isPlaceholder);
}

/// Throws VerbError for a folder that can be read and holds neither runs nor summaries.
void requireRunsIn(const std::string& folder) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored) || isRunFolder(folder) || !obstacleAt(folder).empty()) return;
    throw VerbError(
        kExitInput, fmt::format("{} holds neither a run nor summaries of runs (*.json)", folder),
        fmt::format("`rankscope run -o NAME -- CMD` makes a run, `rankscope baseline save NAME --dir {}` a summary",
                    text::shellWord(folder)));
}

}  // namespace

bool isRunFolder(const std::string& name) {
    std::error_code ignored;
    const fs::path path = name;
    return fs::exists(path / "trace.db", ignored) || fs::exists(path / "capture", ignored);
}

bool isBaselineFolder(const std::string& name) {
    std::error_code ignored;
    if (!fs::is_directory(name, ignored) || isRunFolder(name)) return false;
    return holdsPlaceholdersOnly(name) || !compare::baselineFiles(name).empty();
}

std::vector<compare::RunSummary> readSummaries(const std::vector<std::string>& names, unsigned workers,
                                               const Console& console) {
    std::vector<compare::RunSummary> runs;
    for (const std::string& name : names) {
        try {
            if (isBaselineFolder(name)) {
                for (compare::RunSummary& run : compare::readBaseline(name)) runs.push_back(std::move(run));
                continue;
            }
            std::error_code ignored;
            if (fs::path(name).extension() == ".json" && fs::is_regular_file(name, ignored)) {
                runs.push_back(compare::readSummary(name));
                continue;
            }
        } catch (const compare::SummaryError& error) {
            throw VerbError(kExitInput, text::oneLine(error.what()), error.hint());
        }
        requireRunsIn(name);
        const RunInput input = findRun(name);
        collectOnDemand(input, console);
        Progress progress(console, "summarising " + name);
        runs.push_back(compare::summarizeTrace(input.database, workers));
        progress.end();
        console.stage(fmt::format("summarised {}", name));
        runs.back().toolVersion = RANKSCOPE_VERSION;
        if (runs.back().name.empty() || names.size() > 1) runs.back().name = name;
    }
    return runs;
}

}  // namespace rankscope::cli

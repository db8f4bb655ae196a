// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/run_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_lock.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/progress.h"
#include "analyzer/cli/job/live_processes.h"
#include "analyzer/cli/job/run_directory.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/nearest_word.h"
#include "collector/collect.h"
#include "collector/store/bounded_json.h"
#include "collector/store/reader.h"
#include "collector/store/tables.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

// What the first process of a team tells the others to do.
constexpr std::string_view kCollect = "collect", kCollected = "collected";

bool hasCaptureFiles(const std::filesystem::path& folder) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored))
        if (entry.path().extension() == ".cap") return true;
    return false;
}

/// Rows that are there whether a rank did anything or not.
bool isReadBesideTheJob(std::string_view table) {
    return table == store::Table<store::DeviceHealth>::kName || table == store::Table<store::PortCounter>::kName;
}

struct Contents {
    int64_t events = 0, ranks = 0, missing = 0;
    std::string summary;
};

Contents contentsOf(store::TraceReader& trace) {
    Contents contents;
    int64_t losses = 0;
    for (const auto& extent : trace.all<store::Extent>())
        if (!isReadBesideTheJob(extent.tableName)) contents.events += extent.lastId - extent.firstId + 1;
    for (const auto& rank : trace.all<store::Rank>())
        ++(rank.processId.has_value() ? contents.ranks : contents.missing);
    for (const auto& loss : trace.all<store::Loss>()) losses += loss.severity != store::Severity::info;
    contents.summary = fmt::format("{}, {} events", text::countedText(contents.ranks, "rank"), contents.events);
    if (contents.missing > 0) contents.summary += fmt::format(", {} missing", contents.missing);
    if (losses > 0)
        contents.summary += fmt::format(", {} loss{} (the report names them)", losses, losses == 1 ? "" : "es");
    return contents;
}

std::string warnOfLiveRanks(const std::vector<pid_t>& live) {
    return fmt::format(
        "{} process{} of the job still run{} (pid {}): the trace holds what they recorded until now, and tells of {} "
        "as of processes that died; collect again when the job has ended",
        live.size(), live.size() == 1 ? "" : "es", live.size() == 1 ? "s" : "", fmt::join(live, ", "),
        live.size() == 1 ? "it" : "them");
}

// A part of the job was asked for and never came.
std::string warnOfEmptyPart(const RunInput& input) {
    const auto run = store::readJsonOrNothing(input.directory / "run.json");
    if (!run.is_object() || !run.contains("options") || !run["options"].is_object()) return {};
    const auto& options = run["options"];
    const auto range = options.find("capture_range");
    const auto delay = options.find("delay_s");
    if (range != options.end() && range->is_string() && *range != "none")
        return fmt::format(
            "nothing was recorded: no process of the job came to the capture range {}, or none did anything in it",
            range->get<std::string>());
    if (delay != options.end() && delay->is_number())
        return fmt::format("nothing was recorded: the job ended within the delay of {} s", delay->get<double>());
    return {};
}

// Another who collects this run may take long over it: longer than this is no collecting.
constexpr std::chrono::minutes kLongestCollecting{30};

std::unique_ptr<LockedFile> takeTurn(const RunInput& input) {
    const fs::path file = input.directory / ".collecting";
    try {
        return std::make_unique<LockedFile>(file, kLongestCollecting);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::timed_out)
            throw VerbError(kExitInput,
                            fmt::format("{} is being collected: {}", input.directory.string(), error.what()),
                            "wait for that process, or end it");
        throw VerbError(
            kExitInput,
            fmt::format("cannot write into the run directory {}: {}", input.directory.string(), error.code().message()),
            "copy the run to a place that can be written, and collect it there");
    }
}

// Names of the runs in the folder where `run` was looked for, as they would be typed.
std::vector<std::string> runsBeside(const fs::path& run) {
    std::vector<std::string> names;
    std::error_code error;
    const fs::path folder = run.has_parent_path() ? run.parent_path() : fs::path(".");
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (isRunDirectory(entry.path()) || fs::exists(entry.path() / "trace.db", error))
            names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
}

// True when the database is missing or some capture file is newer than it.
bool needsCollecting(const RunInput& input) {
    std::error_code ignored;
    if (!fs::exists(input.database, ignored)) return true;
    if (input.captures.empty()) return false;
    const auto collected = fs::last_write_time(input.database, ignored);
    for (const auto& entry : fs::directory_iterator(input.captures, ignored))
        if (entry.last_write_time(ignored) > collected) return true;
    return false;
}

}  // namespace

namespace {

// Of a run that is named by it, with or without a slash at its end.
fs::path directoryOf(const fs::path& path) {
    const fs::path directory = fs::absolute(path).lexically_normal();
    return directory.has_filename() ? directory : directory.parent_path();
}

}  // namespace

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
        throw VerbError(
            kExitInput, fmt::format("there is no run {}", name),
            text::didYouMean(path.filename().string(), runsBeside(path)) +
                "give a run's name, its directory or its .db file; `rankscope run -o NAME -- CMD` makes one");
    RunInput input;
    input.directory = directoryOf(path);
    input.database = path / "trace.db";
    if (fs::is_directory(path / "capture", ignored)) input.captures = path / "capture";
    if (input.captures.empty() && !fs::exists(input.database, ignored))
        throw VerbError(kExitInput, fmt::format("{} is not a run: it has neither trace.db nor a capture folder", name));
    return input;
}

Collected collectRun(const RunInput& input, const Console& console, const std::vector<fs::path>& otherHosts,
                     const std::string& links, team::Team* team, bool shards) {
    const auto turn = takeTurn(input);
    removeLeftovers(input.database);
    Collected collected;
    if (team == nullptr && otherHosts.empty() && !hasCaptureFiles(input.directory)) {
        collected.recordedNothing = true;
        return collected;
    }
    collector::CollectOptions options;
    options.moreDirectories = otherHosts;
    options.links = links;
    options.team = team;
    options.shards = shards;
    if (team != nullptr) team->sendToAll(kCollect);
    if (!links.empty()) tellLinks(input.directory, links);
    const auto live = liveRanks(input.captures);
    Progress progress(console, "collecting " + input.directory.filename().string());
    const auto result = collector::collect(input.directory, options);
    progress.end();
    store::TraceReader trace(result.file, {}, store::MisplacedRows::refused, store::MissingShards::elsewhere);
    const Contents contents = contentsOf(trace);
    collected.summary = contents.summary;
    collected.ranks = contents.ranks;
    collected.missing = contents.missing;
    if (!live.empty() && trace.meta("dump", "").empty())  // a dump is what it is, whatever its job does now
        collected.warning = warnOfLiveRanks(live);
    else if (contents.events == 0)
        collected.warning = warnOfEmptyPart(input);
    return collected;
}

void requireRecorded(const Collected& collected, const std::string& run) {
    if (collected.recordedNothing)
        throw VerbError(kExitInput, fmt::format("{} holds no capture files: the job recorded nothing", run),
                        "`rankscope doctor` tells what this machine can record");
}

void tellContents(const fs::path& database, const Console& console) {
    if (!console.isVerbose()) return;
    store::TraceReader trace(database, {}, store::MisplacedRows::refused, store::MissingShards::elsewhere);
    const int64_t steps = trace.database().integer("SELECT count(DISTINCT step) FROM step");
    console.stage(
        fmt::format("read {}: {}, {}", database.string(), contentsOf(trace).summary, text::countedText(steps, "step")));
    for (const store::Loss& loss : trace.all<store::Loss>())
        console.note(fmt::format("  {}: {}", store::toText(loss.severity), loss.message));
}

void collectOnDemand(const RunInput& input, const Console& console, team::Team* team) {
    if (!needsCollecting(input)) {
        if (team != nullptr) team->sendToAll(kCollected);
        return tellContents(input.database, console);
    }
    if (input.captures.empty()) throw VerbError(kExitInput, fmt::format("{} does not exist", input.database.string()));
    const bool hadShards = !store::shardMarkIn(input.database, store::kShardsKey).empty();
    const Collected collected = collectRun(input, console, {}, {}, team, hadShards);
    requireRecorded(collected, input.directory.string());
    console.note(fmt::format("collected the captures first: {}", collected.summary));
    if (!collected.warning.empty()) console.warning(collected.warning);
    tellContents(input.database, console);
}

void helpCollect(const std::vector<std::string>& runs, team::Team& team) {
    if (team.await() != kCollect) return;
    std::vector<fs::path> directories;
    std::error_code ignored;
    for (const std::string& run : runs)
        directories.push_back(fs::is_regular_file(run, ignored) ? fs::absolute(run).parent_path() : directoryOf(run));
    removeLeftovers(directories.front() / "trace.db");
    collector::helpCollect(directories, team);
}

int helpedToTheEnd(team::Team& team) {
    for (;;) team.await();
}

}  // namespace rankscope::cli

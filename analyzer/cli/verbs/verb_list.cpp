// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/terminal_size.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/text/json_text.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"
#include "collector/store/bounded_json.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

struct ListOptions {
    std::string folder = ".";
    std::string format = "text";
    bool all = false;
};

// A run in a folder, as far as it can be told without reading its events.
struct ListedRun {
    std::string name;
    std::optional<int64_t> startUnixNs, ranks, exitStatus, findings;
    int64_t bytes = 0;
    std::string source, command, worst, problem;
    bool isCollected = false;
};

int64_t bytesBelow(const fs::path& folder) {
    int64_t bytes = 0;
    std::error_code error;
    for (auto entry = fs::recursive_directory_iterator(folder, error); !error && entry != fs::end(entry);
         entry.increment(error)) {
        std::error_code ignored;
        if (entry->is_regular_file(ignored)) bytes += static_cast<int64_t>(entry->file_size(ignored));
    }
    return bytes;
}

std::optional<int64_t> integerIn(const nlohmann::json& object, const char* key) {
    const auto value = object.find(key);
    return value != object.end() && value->is_number_integer() ? std::optional(value->get<int64_t>()) : std::nullopt;
}

void tellDescription(const fs::path& file, ListedRun& run) {
    const auto document = store::readJsonOrNothing(file);
    if (!document.is_object()) {
        run.problem = "run.json is damaged";
        return;
    }
    run.source = "capture";
    run.startUnixNs = integerIn(document, "start_unix_ns");
    run.ranks = integerIn(document, "world_size");
    run.exitStatus = integerIn(document, "exit_status");
    if (const auto words = document.find("command"); words != document.end() && words->is_array())
        for (const auto& word : *words)
            if (word.is_string())
                run.command += (run.command.empty() ? "" : " ") + text::shellWord(word.get<std::string>());
    if (!document.contains("end_unix_ns")) run.problem = "still being recorded, or its wrapper was killed";
}

void tellDatabase(const fs::path& file, ListedRun& run) {
    try {
        store::TraceReader trace(
            file, [](std::chrono::milliseconds) { return false; }, store::MisplacedRows::kept,
            store::MissingShards::elsewhere);
        run.isCollected = true;
        run.source = trace.meta("source", run.source);
        run.ranks = static_cast<int64_t>(trace.all<store::Rank>().size());
        if (!run.startUnixNs) run.startUnixNs = trace.metaInteger("start_unix_ns", 0);
        if (trace.meta("analysis.verdict", "").empty()) return;
        run.findings = trace.database().integer("SELECT count(*) FROM finding WHERE verdict <> 'note'");
        store::Statement worst(
            trace.database(),
            "SELECT diagnosis || ' ' || title FROM finding WHERE verdict <> 'note' ORDER BY id LIMIT 1");
        if (worst.step()) run.worst = std::string(worst.text(0));
    } catch (const store::Error& error) {
        run.problem = error.cause();
    }
}

std::vector<ListedRun> runsIn(const fs::path& folder) {
    std::vector<ListedRun> runs;
    for (const auto& entry : fs::directory_iterator(folder)) {
        std::error_code ignored;
        if (!entry.is_directory(ignored)) continue;
        const bool isRecorded = fs::exists(entry.path() / "run.json", ignored);
        const bool hasDatabase = fs::exists(entry.path() / "trace.db", ignored);
        if (!isRecorded && !hasDatabase) continue;
        ListedRun run{.name = (folder == "." ? entry.path().filename() : entry.path()).string()};
        if (isRecorded) tellDescription(entry.path() / "run.json", run);
        if (hasDatabase) tellDatabase(entry.path() / "trace.db", run);
        run.bytes = bytesBelow(entry.path());
        runs.push_back(std::move(run));
    }
    // The newest first: it is the one that somebody looks for.
    std::ranges::sort(runs, [](const ListedRun& a, const ListedRun& b) {
        return std::pair(b.startUnixNs.value_or(0), a.name) < std::pair(a.startUnixNs.value_or(0), b.name);
    });
    return runs;
}

std::string stateOf(const ListedRun& run) {
    if (!run.problem.empty()) return run.problem;
    std::string state;
    if (run.exitStatus && *run.exitStatus != 0) state = fmt::format("ended with {}; ", *run.exitStatus);
    if (!run.isCollected) return state + "not collected";
    if (!run.findings) return state + "not analysed";
    if (*run.findings == 0) return state + "no finding";
    const int64_t others = *run.findings - 1;
    return state + run.worst + (others > 0 ? fmt::format(" and {} more", others) : "");
}

std::string startText(const ListedRun& run) {
    if (run.startUnixNs.value_or(0) <= 0) return "?";
    return fmt::format("{:%Y-%m-%d %H:%M}",
                       fmt::localtime(static_cast<std::time_t>(static_cast<double>(*run.startUnixNs) / kNsPerS)));
}

std::string tableOf(const std::vector<ListedRun>& runs, size_t columns) {
    size_t width = 4;
    for (const ListedRun& run : runs) width = std::max(width, text::oneLine(run.name).size());
    const auto line = [&](const auto& name, const auto& start, const auto& ranks, const auto& size, const auto& state) {
        return fmt::format("{:<{}}  {:<16}  {:>5}  {:>9}  {}", name, width, start, ranks, size, state);
    };
    std::string out = line("name", "started", "ranks", "size", "what is known") + "\n";
    for (const ListedRun& run : runs)
        out +=
            text::shortened(line(text::oneLine(run.name), startText(run), run.ranks ? std::to_string(*run.ranks) : "?",
                                 text::bytesText(static_cast<double>(run.bytes)), text::oneLine(stateOf(run))),
                            std::max(columns, width + 60)) +
            "\n";
    return out;
}

std::string jsonOf(const std::vector<ListedRun>& runs) {
    using text::Json;
    return text::jsonText({{"schema", "rankscope.list/1"}, {"runs", text::arrayOf(runs, [](const ListedRun& run) {
                                                                return Json{
                                                                    {"name", run.name},
                                                                    {"start_unix_ns", text::orNull(run.startUnixNs)},
                                                                    {"ranks", text::orNull(run.ranks)},
                                                                    {"bytes", run.bytes},
                                                                    {"source", text::orNull(run.source)},
                                                                    {"command", text::orNull(run.command)},
                                                                    {"exit_status", text::orNull(run.exitStatus)},
                                                                    {"collected", run.isCollected},
                                                                    {"findings", text::orNull(run.findings)},
                                                                    {"first_finding", text::orNull(run.worst)},
                                                                    {"problem", text::orNull(run.problem)}};
                                                            })}});
}

int list(const ListOptions& options, const Console& console) {
    std::error_code ignored;
    if (!fs::is_directory(options.folder, ignored))
        throw VerbError(kExitInput, fmt::format("there is no folder {}", options.folder), "rankscope list FOLDER");
    std::vector<ListedRun> runs = runsIn(options.folder);
    if (options.format == "json") {
        console.result(jsonOf(runs));
        return kExitOk;
    }
    if (runs.empty()) {
        console.note(fmt::format("no run in {}", options.folder == "." ? "this folder" : options.folder));
        console.next("rankscope demo");
        return kExitOk;
    }
    constexpr size_t kMost = 30;  // a screen; the newest are at the top
    const size_t all = runs.size();
    if (!options.all && all > kMost) runs.resize(kMost);
    console.result(tableOf(runs, columnsOfStdout()));
    if (runs.size() < all) console.result(fmt::format("and {} older: --all shows them\n", all - runs.size()));
    console.next(fmt::format("rankscope analyze {}", text::shellWord(runs.front().name)));
    return kExitOk;
}

}  // namespace

void addListVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<ListOptions>();
    auto* verb = app.add_subcommand("list", "The runs in a folder: when, how many ranks, how large, what was found");
    verb->group(kRecordGroup);
    verb->add_option("FOLDER", options->folder, "The folder that holds the runs")->capture_default_str();
    verb->add_flag("--all", options->all, "Also more than the newest 30");
    addFormatOption(*verb, options->format, {"text", "json"}, "text or json");
    setAction(*verb, invocation, [options, &invocation] { return list(*options, invocation.console); });
}

}  // namespace rankscope::cli

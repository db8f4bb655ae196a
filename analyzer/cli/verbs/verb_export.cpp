// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/progress.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/export/about_run.h"
#include "analyzer/export/chakra_traces.h"
#include "analyzer/export/csv_folder.h"
#include "analyzer/export/exported_event.h"
#include "analyzer/export/walk_trace.h"
#include "analyzer/text/gzip_output.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/output_file.h"
#include "analyzer/text/output_folder.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/reader.h"

namespace rankscope::cli {
namespace {

struct ExportVerbOptions {
    std::string run;
    std::string format;
    std::string output;
    std::string ranks, steps;
};

/// "3", "0-7", "0-3,8": whole numbers in any order. Throws VerbError (exit code 2).
std::vector<std::pair<int, int>> numberRanges(const std::string& text, const char* option) {
    std::vector<std::pair<int, int>> ranges;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        int first = 0, last = 0;
        const char *const from = text.data() + at, *const to = text.data() + end;
        auto parsed = std::from_chars(from, to, first);
        last = first;
        if (parsed.ec == std::errc() && parsed.ptr != to && *parsed.ptr == '-')
            parsed = std::from_chars(parsed.ptr + 1, to, last);
        if (parsed.ec != std::errc() || parsed.ptr != to || first < 0 || last < first)
            throw VerbError(kExitUsage, fmt::format("{} {}: no numbers", option, text),
                            fmt::format("{0} 3, {0} 0-7 or {0} 0-3,8", option));
        ranges.emplace_back(first, last);
        at = end + 1;
    }
    return ranges;
}

/// Selects what is asked for and is in the run. Throws VerbError (exit code 2 or 3).
exports::ExportSelection selectionOf(const ExportVerbOptions& options, store::TraceReader& trace) {
    exports::ExportSelection selection;
    if (!options.ranks.empty()) {
        const auto ranges = numberRanges(options.ranks, "--ranks");
        for (const store::Rank& row : trace.all<store::Rank>())
            if (std::ranges::any_of(
                    ranges, [&](const auto& range) { return row.rank >= range.first && row.rank <= range.second; }))
                selection.ranks.push_back(row.rank);
        if (selection.ranks.empty())
            throw VerbError(kExitInput, fmt::format("--ranks {}: the run has none of them", options.ranks));
    }
    if (!options.steps.empty()) {
        const auto ranges = numberRanges(options.steps, "--steps");
        if (ranges.size() != 1)
            throw VerbError(kExitUsage, fmt::format("--steps {}: one range is taken", options.steps), "--steps 10-12");
        selection.steps = ranges.front();
        const int64_t first = trace.database().integer("SELECT min(step) FROM step", -1),
                      last = trace.database().integer("SELECT max(step) FROM step", -1);
        if (last < 0 || selection.steps->first > last || selection.steps->second < first)
            throw VerbError(kExitInput, last < 0 ? "the run has no steps"
                                                 : fmt::format("--steps {}: the run has steps {} to {}", options.steps,
                                                               first, last));
    }
    return selection;
}

/// Throws VerbError for what is no folder that several files can be written into.
void checkFolder(const ExportVerbOptions& options, const char* what) {
    std::error_code ignored;
    const bool isThere = std::filesystem::exists(options.output, ignored);
    if (options.output == "-" || (isThere && (!std::filesystem::is_directory(options.output, ignored) ||
                                              !std::filesystem::is_empty(options.output, ignored))))
        throw VerbError(kExitInput,
                        fmt::format("-o {}: {} are written into a folder that is new or empty", options.output, what));
}

/// The tables of a run as they are, in a folder of their own.
int exportTables(const ExportVerbOptions& options, store::TraceReader& trace, const Console& console) {
    if (!options.ranks.empty() || !options.steps.empty())
        throw VerbError(kExitUsage, "--to tables writes the tables whole: --ranks and --steps do not go with it");
    checkFolder(options, "tables");
    Progress progress(console, "writing " + options.output);
    text::OutputFolder folder(options.output);
    exports::writeCsvFolder(trace.database(), folder.place());
    folder.commit();
    progress.end();
    console.note(
        fmt::format("{}: a file for each table; collector/store/schema.sql says what stands in them", options.output));
    return kExitOk;
}

/// Execution traces for simulators, a file for each rank.
int exportChakra(const ExportVerbOptions& options, store::TraceReader& trace, const Console& console) {
    if (!options.steps.empty())
        throw VerbError(kExitUsage, "--to chakra writes all steps: --steps does not go with it");
    checkFolder(options, "execution traces");
    const exports::ExportSelection selection = selectionOf(options, trace);
    text::OutputFolder folder(options.output);
    const exports::ChakraResult result = exports::writeChakraTraces(trace, folder.place(), selection.ranks);
    folder.commit();
    console.note(
        fmt::format("{}: {} with {} nodes, for Chakra's tools and ASTRA-sim; operations and bytes of compute "
                    "nodes are not known, only how long they took",
                    options.output, text::countedText(result.files.size(), "execution trace"), result.nodes));
    if (result.unknownSizes > 0)
        console.note(fmt::format("{} collectives and messages have no comm_size: the run does not tell it",
                                 result.unknownSizes));
    return kExitOk;
}

int exportRun(const ExportVerbOptions& options, const Console& console) {
    const RunInput input = findRun(options.run);
    if (options.format == "chakra") {
        collectOnDemand(input, console);
        store::TraceReader trace(input.database);
        return exportChakra(options, trace, console);
    }
    if (options.format == "tables") {
        collectOnDemand(input, console);
        store::TraceReader trace(input.database);
        return exportTables(options, trace, console);
    }
    checkOutput(options.output, {options.run});
    collectOnDemand(input, console);
    store::TraceReader trace(input.database);
    const exports::ExportSelection selection = selectionOf(options, trace);
    text::OutputFile file(options.output);
    std::string_view name = options.output;
    std::optional<text::GzipOutput> gzip;
    if (name.ends_with(".gz")) {
        gzip.emplace(file.stream());
        name.remove_suffix(3);
    }
    std::ostream& out = gzip ? gzip->stream() : file.stream();
    const auto sink =
        options.format == "csv" ? exports::csvTable(out)
        : options.format == "perfetto" && (name.ends_with(".pftrace") || name.ends_with(".perfetto-trace"))
            ? exports::perfettoTrace(out, exports::aboutRun(trace))
            : exports::chromeTrace(out, exports::aboutRun(trace));
    Progress progress(console, "writing " + options.output);
    exports::walkTrace(trace, *sink, selection);
    progress.end();
    if (gzip) gzip->finish();
    file.commit();
    if (options.format != "csv" && options.output != "-")
        console.next(fmt::format("open {} in https://ui.perfetto.dev (it stays on this machine)",
                                 text::shellWord(options.output)));
    return kExitOk;
}

}  // namespace

void addExportVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<ExportVerbOptions>();
    auto* verb =
        app.add_subcommand("export", "Write a run for other viewers: Perfetto, chrome://tracing, spreadsheets");
    verb->group(kReportGroup);
    addRunOption(*verb, options->run);
    verb->add_option("--to", options->format,
                     "perfetto (its own format where FILE ends with .pftrace or .perfetto-trace, else trace event "
                     "JSON), chrome (JSON), csv (one line per event), tables (a CSV file for each table, in the folder "
                     "FILE), or chakra "
                     "(an execution trace for each rank, in the folder FILE)")
        ->check(CLI::IsMember({"perfetto", "chrome", "csv", "tables", "chakra"}))
        ->required();
    verb->add_option("-o,--output", options->output, "File to write, as gzip where it ends with .gz; - is stdout")
        ->type_name("FILE")
        ->required();
    verb->add_option("--ranks", options->ranks, "These ranks only, as 0-3,8")->type_name("LIST");
    verb->add_option("--steps", options->steps, "What begins in these steps only, as 10-12")->type_name("A-B");
    setAction(*verb, invocation, [options, &invocation] { return exportRun(*options, invocation.console); });
}

}  // namespace rankscope::cli

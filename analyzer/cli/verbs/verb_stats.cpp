// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/progress.h"
#include "analyzer/cli/console/terminal_size.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/stats/event_stats.h"
#include "analyzer/stats/hta_tables.h"
#include "analyzer/text/output_file.h"
#include "collector/store/reader.h"

namespace rankscope::cli {
namespace {

struct StatsVerbOptions {
    std::string run;
    std::string tables = "events";
    std::string format = "text";
    std::string output = "-";
    std::optional<size_t> top;
    stats::EventStatsOptions events;
};

/// Columns of the text in a file, and at most of a wide terminal: names of kernels are cut off behind. Eight columns of
/// numbers take 80, and names need as much to be told apart: templates begin alike for 40 to 60 characters.
constexpr size_t kMostColumns = 160;

int tellStats(const StatsVerbOptions& options, const Console& console) {
    const bool isHta = options.tables == "hta";
    if (isHta && (options.top || options.events.perRank))
        throw VerbError(kExitUsage, "--tables hta takes neither --top nor --per-rank",
                        "HTA's tables have all rows, each of one rank");
    const RunInput input = findRun(options.run);
    if (options.output != "-") checkOutput(options.output, {options.run});
    collectOnDemand(input, console);
    store::TraceReader trace(input.database);
    stats::EventStatsOptions events = options.events;
    events.top = options.top.value_or(events.top);
    Progress progress(console, "reading " + options.run);
    const auto tables = isHta ? stats::htaTables(trace) : stats::eventStats(trace, events);
    progress.end();
    text::OutputFile file(options.output);
    if (options.format == "json")
        stats::writeJson(tables, trace.meta("run_name", options.run), file.stream());
    else if (options.format == "csv")
        stats::writeCsv(tables, file.stream());
    else
        stats::writeText(tables, options.output == "-" ? columnsOfStdout(kMostColumns) : kMostColumns, file.stream());
    file.commit();
    return kExitOk;
}

}  // namespace

void addStatsVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<StatsVerbOptions>();
    auto* verb =
        app.add_subcommand("stats", "What ran, how often and how long: kernels, copies, NCCL, CUDA calls, NVTX ranges");
    verb->group(kReportGroup);
    addRunOption(*verb, options->run);
    verb->add_option("--tables", options->tables,
                     "events: by name; hta: the tables of HolisticTraceAnalysis, by its definitions")
        ->check(CLI::IsMember({"events", "hta"}));
    verb->add_flag("--per-rank", options->events.perRank, "A row for each rank; left out: all ranks together");
    verb->add_option("--top", options->top, "Rows of each table, those with most time; 0 for all [20]")
        ->check(CLI::Range(0, 1'000'000))
        ->type_name("N");
    addFormatOption(*verb, options->format, {"text", "csv", "json"}, "How to write them");
    verb->add_option("-o,--output", options->output, "File to write; left out or -: stdout")->type_name("FILE");
    setAction(*verb, invocation, [options, &invocation] { return tellStats(*options, invocation.console); });
}

}  // namespace rankscope::cli

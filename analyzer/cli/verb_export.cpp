// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "analyzer/cli/collect_step.h"
#include "analyzer/cli/errors.h"
#include "analyzer/cli/run_input.h"
#include "analyzer/cli/streamed_file.h"
#include "analyzer/cli/verb.h"
#include "analyzer/export/export_formats.h"
#include "analyzer/export/walk_trace.h"
#include "collector/store/reader.h"

namespace rankscope::cli {
namespace {

struct ExportVerbOptions {
    std::string run;
    std::string format;
    std::string output;
};

int exportRun(const ExportVerbOptions& options, const Console& console) {
    const RunInput input = findRun(options.run);
    collectOnDemand(input, console);
    store::TraceReader trace(input.database);
    StreamedFile file(options.output);
    const auto sink = options.format == "csv" ? analyzer::csvTable(file.stream()) : analyzer::chromeTrace(file.stream(), trace.meta("run_name", options.run));
    analyzer::walkTrace(trace, *sink);
    file.commit();
    if (options.format != "csv") console.next(fmt::format("open {} in https://ui.perfetto.dev (it stays on this machine)", options.output));
    return kExitOk;
}

}  // namespace

void addExportVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<ExportVerbOptions>();
    auto* verb = app.add_subcommand("export", "Write a run for other viewers: Perfetto, chrome://tracing, spreadsheets");
    verb->add_option("NAME", options->run, "Run name, run directory or .db file")->required();
    verb->add_option("--to", options->format, "perfetto or chrome (trace event JSON, which both open), or csv (one line per event)")
        ->check(CLI::IsMember({"perfetto", "chrome", "csv"}))
        ->required();
    verb->add_option("-o,--output", options->output, "File to write")->type_name("FILE")->required();
    verb->callback([options, &invocation] {
        invocation.action = [options, &invocation] { return exportRun(*options, invocation.console); };
    });
}

}  // namespace rankscope::cli

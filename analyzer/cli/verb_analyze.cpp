// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "analyzer/analyze.h"
#include "analyzer/cli/collect_step.h"
#include "analyzer/cli/errors.h"
#include "analyzer/cli/link_options.h"
#include "analyzer/cli/output_place.h"
#include "analyzer/cli/run_input.h"
#include "analyzer/cli/verb.h"
#include "analyzer/report/output_file.h"
#include "analyzer/report/renderers.h"

namespace rankscope::cli {
namespace {

struct AnalyzeVerbOptions {
    std::string run;
    std::string format = "text";
    std::string output;
    unsigned workers = 0;
    LinkOptions links;
};

std::string render(const analyzer::Report& report, const AnalyzeVerbOptions& options, bool color) {
    const std::string& format = options.format;
    if (format == "json") return analyzer::renderJson(report);
    if (format == "md") return analyzer::renderMarkdown(report);
    if (format == "html") return analyzer::renderHtml(report);
    analyzer::TextStyle style;
    style.colour = color;
    style.runName = options.run;
    return analyzer::renderText(report, style);
}

int analyze(const AnalyzeVerbOptions& options, const Console& console) {
    const RunInput input = findRun(options.run);
    if (!options.output.empty()) checkOutput(options.output, {options.run});
    analyzer::AnalyzeOptions settings;
    settings.links = linkSources(options.links);
    collectOnDemand(input, console);
    settings.workers = options.workers;
    settings.overview = options.format == "html";
    const analyzer::Report report = analyzer::analyze(input.database, settings);
    const bool toFile = !options.output.empty();
    std::string text = render(report, options, !toFile && console.colorOnStdout());
    if (!text.empty() && text.back() != '\n') text += '\n';
    if (toFile)
        analyzer::writeOutputFile(text, options.output);
    else
        console.result(text);
    if (options.format == "text" && !toFile) return kExitOk;  // a report for people ends by the next command itself
    console.next(report.findings.empty() ? "rankscope explain" : "rankscope explain " + report.findings.front().id);
    return kExitOk;
}

}  // namespace

void addAnalyzeVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<AnalyzeVerbOptions>();
    auto* verb = app.add_subcommand(
        "analyze", "Steps, breakdown, efficiencies and findings of a run; findings are kept in trace.db too");
    verb->add_option("NAME", options->run, "Run name, run directory or .db file")->required();
    verb->add_option("--format", options->format, "text, json, md, or html: one page without anything beside it")
        ->check(CLI::IsMember({"text", "json", "md", "html"}))
        ->capture_default_str();
    verb->add_option("-o,--output", options->output, "File for the report; stdout when left out")->type_name("FILE");
    addLinkOptions(*verb, options->links);
    verb->add_option("--workers", options->workers, "Threads; 0: one per core")->capture_default_str();
    verb->callback([options, &invocation] {
        invocation.action = [options, &invocation] { return analyze(*options, invocation.console); };
    });
}

}  // namespace rankscope::cli

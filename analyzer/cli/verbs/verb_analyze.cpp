// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/link_options.h"
#include "analyzer/cli/console/output_place.h"
#include "analyzer/cli/job/collect_step.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "analyzer/text/output_file.h"

namespace rankscope::cli {
namespace {

struct AnalyzeVerbOptions {
    std::string run;
    std::string format = "text";
    std::string output;
    unsigned workers = 0;
    LinkOptions links;
};

std::string render(const report::Report& report, const AnalyzeVerbOptions& options, bool color) {
    const std::string& format = options.format;
    if (format == "json") return report::renderJson(report);
    if (format == "md") return report::renderMarkdown(report);
    if (format == "html") return report::renderHtml(report);
    report::TextStyle style;
    style.colour = color;
    style.runName = options.run;
    return report::renderText(report, style);
}

int analyze(const AnalyzeVerbOptions& options, const Console& console) {
    const RunInput input = findRun(options.run);
    if (!options.output.empty()) checkOutput(options.output, {options.run});
    report::AnalyzeOptions settings;
    settings.links = linkSources(options.links);
    collectOnDemand(input, console);
    settings.workers = options.workers;
    settings.overview = options.format == "html";
    const report::Report report = report::analyze(input.database, settings);
    const bool toFile = !options.output.empty();
    std::string text = render(report, options, !toFile && console.colorOnStdout());
    if (!text.empty() && text.back() != '\n') text += '\n';
    if (toFile)
        text::writeOutputFile(text, options.output);
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

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/freed_memory.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/progress.h"
#include "analyzer/cli/console/terminal_size.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "analyzer/text/lists.h"
#include "collector/team/team.h"

namespace rankscope::cli {
namespace {

struct AnalyzeVerbOptions {
    std::string run;
    std::string format = "text";
    std::string output;
    unsigned workers = 0;
    LinkOptions links;
};

std::string render(const report::Report& report, const AnalyzeVerbOptions& options, bool color, size_t columns) {
    const std::string& format = options.format;
    if (format == "json") return report::renderJson(report);
    if (format == "md") return report::renderMarkdown(report);
    if (format == "html") return report::renderHtml(report);
    return report::renderText(report, {.colour = color, .columns = columns, .runName = options.run});
}

report::AnalyzeOptions settingsOf(const AnalyzeVerbOptions& options) {
    report::AnalyzeOptions settings;
    settings.workers = options.workers;
    settings.overview = options.format == "html";
    return settings;
}

/// In a process that mpirun started beside the first one.
int help(const AnalyzeVerbOptions& options, team::Team& team) {
    helpCollect({options.run}, team);
    keepFreedMemory(team::threadsFor(options.workers, &team));
    report::helpAnalyze(options.run, team, settingsOf(options));
    return helpedToTheEnd(team);
}

int analyze(const AnalyzeVerbOptions& options, const Console& console, team::Team* team) {
    const RunInput input = findRun(options.run);
    checkOutput(options.output, {options.run});
    report::AnalyzeOptions settings = settingsOf(options);
    settings.links = linkSources(options.links);
    settings.team = team;
    settings.tell = [&console](const std::string& what) { console.note(what); };
    collectOnDemand(input, console, team);
    keepFreedMemory(team::threadsFor(options.workers, team));
    Progress progress(console, "analysing " + options.run);
    const report::Report report = report::analyze(input.database, settings);
    progress.end();
    const auto warmUp = std::ranges::count(report.steps, true, &report::StepRow::warmUp);
    console.stage(fmt::format(
        "analysed: {} without {} of warm-up, {}, {}", text::countedText(std::ssize(report.steps) - warmUp, "step"),
        warmUp, text::countedText(report.findings.size(), "finding"), text::countedText(report.notes.size(), "note")));
    const bool toFile = !options.output.empty();
    std::string text = render(report, options, !toFile && console.colorOnStdout(),
                              toFile || !console.isTerminal(STDOUT_FILENO) ? text::kTextColumns : columnsOfStdout());
    if (!text.empty() && text.back() != '\n') text += '\n';
    giveResult(text, options.output, console);
    const int status = report.failed ? kExitRunFailed : kExitOk;
    if (options.format == "text" && !toFile) return status;  // a report for people ends by the next command itself
    console.next(report.findings.empty() ? "rankscope explain" : "rankscope explain " + report.findings.front().id);
    return status;
}

}  // namespace

void addAnalyzeVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<AnalyzeVerbOptions>();
    auto* verb = app.add_subcommand(
        "analyze", "Steps, breakdown, efficiencies and findings of a run; findings are kept in trace.db too");
    verb->group(kReportGroup);
    addRunOption(*verb, options->run);
    addFormatOption(*verb, options->format, {"text", "json", "md", "html"},
                    "text, json, md, or html: one page without anything beside it");
    addOutputOption(*verb, options->output, "File for the report");
    addLinkOptions(*verb, options->links);
    addWorkersOption(*verb, options->workers);
    setAction(*verb, invocation, [options, &invocation] {
        team::Team* team = invocation.team.get();
        if (team != nullptr && !team->isFirst()) return help(*options, *team);
        return analyze(*options, invocation.console, team);
    });
}

}  // namespace rankscope::cli

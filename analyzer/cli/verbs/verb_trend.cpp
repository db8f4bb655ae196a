// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/job/summary_input.h"
#include "analyzer/cli/verbs/compare_config.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/compare/trend.h"
#include "analyzer/text/output_file.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

struct TrendVerbOptions {
    std::string baseline;
    std::string format = "text";
    std::string output = "-";
    size_t last = 20;
    unsigned workers = 0;
};

/// The folder that is asked for, else that of rankscope.toml.
std::string baselineFolder(const TrendVerbOptions& options) {
    const std::string folder = options.baseline.empty() ? projectConfig().baseline.value_or("") : options.baseline;
    if (folder.empty())
        throw VerbError(kExitUsage, "which baseline?",
                        fmt::format("rankscope trend DIR, or [compare] baseline in {}", kProjectConfig));
    if (isRunFolder(folder))
        throw VerbError(kExitUsage, text::oneLine(folder) + " is a run, no baseline",
                        fmt::format("rankscope baseline save {} --dir DIR", text::shellWord(folder)));
    std::error_code ignored;
    if (!fs::exists(folder, ignored))
        throw VerbError(kExitInput, "there is no folder " + text::oneLine(folder),
                        fmt::format("rankscope baseline save RUN --dir {}", text::shellWord(folder)));
    return folder;
}

int tellTrend(const TrendVerbOptions& options, const Console& console) {
    const std::string folder = baselineFolder(options);
    if (options.output != "-") checkOutput(options.output, {folder});
    const compare::Trend trend = compare::trendOf(folder, readSummaries({folder}, options.workers, console));
    if (options.format == "text" && options.output == "-") {
        console.result(compare::renderTrendText(trend, options.last, console.colorOnStdout()));
        return kExitOk;
    }
    text::OutputFile file(options.output);
    if (options.format == "json")
        file.stream() << compare::renderTrendJson(trend);
    else if (options.format == "html")
        file.stream() << compare::renderTrendHtml(trend);
    else if (options.format == "badge")
        file.stream() << compare::renderTrendBadge(trend);
    else
        file.stream() << compare::renderTrendText(trend, options.last);
    file.commit();
    return kExitOk;
}

}  // namespace

void addTrendVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<TrendVerbOptions>();
    auto* verb = app.add_subcommand(
        "trend", "How the step of a baseline moved over its commits, and which findings came and went");
    verb->group(kChangeGroup);
    auto* folder =
        verb->add_option("DIR", options->baseline, "Folder of the baseline; left out: that of rankscope.toml");
    verb->add_option("-b,--baseline", options->baseline, "The same as DIR")->type_name("DIR")->excludes(folder);
    verb->add_option("--last", options->last, "Entries that the text lists, the youngest of each kind")
        ->check(CLI::Range(1, 1'000'000))
        ->type_name("N")
        ->capture_default_str();
    addFormatOption(*verb, options->format, {"text", "json", "html", "badge"},
                    "How to write it; badge: a small SVG picture");
    verb->add_option("-o,--output", options->output, "File to write; left out or -: stdout")->type_name("FILE");
    addWorkersOption(*verb, options->workers);
    setAction(*verb, invocation, [options, &invocation] { return tellTrend(*options, invocation.console); });
}

}  // namespace rankscope::cli

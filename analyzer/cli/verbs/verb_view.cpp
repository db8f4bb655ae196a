// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/progress.h"
#include "analyzer/cli/console/user_config.h"
#include "analyzer/cli/job/job_process.h"
#include "analyzer/cli/job/run_input.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/report/analyze.h"
#include "collector/store/error.h"
#include "collector/store/reader.h"

namespace rankscope::cli {
namespace {

struct ViewOptions {
    std::vector<std::string> runs;
    std::optional<std::string> goTo, screenshot, exported, panel, size;
    bool dark = false;
    LinkOptions links;
};

// The window shows findings, so a run that was not analysed yet is analysed first. A run that cannot be (one that is
// still written, or a read-only file) is shown as it is. So is one whose links are told now.
void analyzeOnDemand(const std::filesystem::path& database, const costs::LinkSources& links, const Console& console) {
    const bool told = !links.told.empty() || !links.tables.empty();
    try {
        store::TraceReader reader(
            database, [](std::chrono::milliseconds) { return false; }, store::MisplacedRows::kept);
        if (!told && reader.database().integer(
                         "SELECT EXISTS (SELECT 1 FROM attribution) OR EXISTS (SELECT 1 FROM finding)") != 0)
            return;
    } catch (const store::LockedFile&) {
        return;  // the window waits for it and says so
    }
    try {
        report::AnalyzeOptions settings;
        settings.links = links;
        const Progress progress(console, "analysing " + database.string());
        report::analyze(database, settings);
    } catch (const std::exception& error) {
        console.warning(fmt::format("{} is shown without findings: {}", database.string(), error.what()));
    }
}

[[noreturn]] void startWindow(const std::filesystem::path& program, const ViewOptions& options,
                              const std::vector<std::string>& databases) {
    std::vector<std::string> words{program.string()};
    words.insert(words.end(), databases.begin(), databases.end());
    for (const auto& [option, value] : {std::pair{"--goto", options.goTo},
                                        {"--screenshot", options.screenshot},
                                        {"--export", options.exported},
                                        {"--panel", options.panel},
                                        {"--size", options.size}})
        if (value) words.insert(words.end(), {option, *value});
    if (options.dark || userConfig().dark) words.push_back("--dark");
    ::execv(program.c_str(), pointers(words).data());
    throw VerbError(kExitInternal, fmt::format("{} could not be started: {}", program.string(), std::strerror(errno)));
}

// Refuses what the window would refuse, before the run is collected and analysed for it.
void refuseFile(const char* option, const std::optional<std::string>& file,
                std::initializer_list<const char*> endings) {
    if (!file) return;
    std::string lower = *file;
    for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (std::ranges::any_of(endings, [&](const char* ending) { return lower.ends_with(ending); })) return;
    throw VerbError(kExitUsage, file->empty() ? fmt::format("{} takes the name of a file", option)
                                              : fmt::format("{} writes files that end in {}, not {}", option,
                                                            fmt::join(endings, ", "), *file));
}

int view(const ViewOptions& options, const Console& console) {
    refuseFile("--screenshot", options.screenshot, {".png", ".svg", ".jpg", ".jpeg", ".bmp"});
    refuseFile("--export", options.exported, {".csv", ".png", ".svg", ".jpg", ".jpeg", ".bmp"});
    const std::filesystem::path program = findInstallLayout().view;
    std::error_code ignored;
    if (!std::filesystem::exists(program, ignored))
        throw VerbError(kExitInput,
                        "this build has no timeline: only the demo was built, or Qt 6 (Widgets and Svg) was not there",
                        "install the package rankscope-gui, or run ./bootstrap.sh build, which installs qt6-base-dev "
                        "and qt6-svg-dev (libqt6svg6-dev on "
                        "Ubuntu 22.04), or read the report: rankscope analyze NAME");
    const costs::LinkSources links = linkSources(options.links);
    std::vector<std::string> databases;
    for (const std::string& run : options.runs) {
        const RunInput input = findRun(run);
        collectOnDemand(input, console);
        analyzeOnDemand(input.database, links, console);
        databases.push_back(input.database.string());
    }
    startWindow(program, options, databases);
}

}  // namespace

void addViewVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<ViewOptions>();
    auto* verb = app.add_subcommand("view", "The timeline of a run, all ranks on one clock, with its findings");
    verb->group(kReportGroup);
    verb->add_option("NAME", options->runs,
                     "Run name, run directory or .db file; a second one is shown below it, aligned by step; none: a "
                     "dialog asks for it")
        ->expected(0, 2);
    verb->add_option("--goto", options->goTo, "Finding to go to, for example RS301")->type_name("ID");
    verb->add_option("--screenshot", options->screenshot,
                     "Write a picture of the window (.png, .svg) and end; needs no display")
        ->type_name("FILE");
    verb->add_option("--export", options->exported,
                     "Write what the timeline shows and end: its events (.csv), or a picture without the panels (.svg, "
                     ".png); needs no display")
        ->type_name("FILE");
    verb->add_option("--panel", options->panel,
                     "Panel to open: findings, details, events, range, sql, stragglers, step-times, matrix, bandwidth, "
                     "roofline, pipeline, differences")
        ->type_name("NAME");
    verb->add_option("--size", options->size, "Size of the window or picture in pixels, 1600x900 when left out")
        ->type_name("WxH");
    addLinkOptions(*verb, options->links);
    verb->add_flag("--dark", options->dark, "Dark colours; also view.theme = \"dark\" in config.toml");
    setAction(*verb, invocation, [options, &invocation] { return view(*options, invocation.console); });
}

}  // namespace rankscope::cli

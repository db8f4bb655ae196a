// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/job/summary_input.h"
#include "analyzer/cli/verbs/compare_config.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/compare/comparability.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/compare/runs_needed.h"
#include "analyzer/compare/summary_file.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDefaultFolder = "rankscope-baseline";

struct BaselineOptions {
    std::vector<std::string> names;
    std::string folder = kDefaultFolder;
    std::string label;
    int keep = 10;
    unsigned workers = 0;
};

std::string describe(const compare::RunSummary& run) {
    const double stepNs = compare::locate(run.stepsNs, compare::StepEstimator::trimmedMean).value;
    const auto also = [&](const char* key) {
        const std::string value = text::valueAt(run.environment, key);
        return value.empty() ? value : ", " + value;
    };
    return text::oneLine(fmt::format("{:<24} {:<16} {:>4} steps of {:>8}  {} ranks{}{}", run.name,
                                     run.label.empty() ? "-" : run.label, run.steps, text::durationText(stepNs),
                                     run.environment.count("world_size") ? run.environment.at("world_size") : "?",
                                     also("layout"), also("gpu")));
}

void sayNext(const BaselineOptions& options, const Console& console) {
    console.next(fmt::format("rankscope compare --baseline {} NEW", text::shellWord(options.folder)));
}

std::string worthOf(const compare::FindingSummary& finding) {
    if (finding.savingNs) return ", its repair saves " + text::durationText(*finding.savingNs) + " a step";
    return finding.costNs ? ", costs " + text::durationText(*finding.costNs) + " a step" : "";
}

/// A baseline holds summaries and nothing else: inside a run they would never be read.
void refuseRunFolder(const std::string& folder) {
    if (folder.empty()) throw VerbError(kExitUsage, "--dir: the name is empty", "is a variable not set?");
    if (isRunFolder(folder))
        throw VerbError(kExitUsage, fmt::format("{} is a run, no baseline", folder),
                        fmt::format("--dir {} or another folder of its own", kDefaultFolder));
}

/// Refuses what is there and is no folder, or cannot be read.
void refuseObstacle(const std::string& folder) {
    constexpr const char* kHint = "--dir names the folder of a baseline";
    if (const std::string obstacle = obstacleAt(folder); !obstacle.empty())
        throw VerbError(kExitInput, fmt::format("{} {}", folder, obstacle), kHint);
    std::error_code ignored;
    if (fs::is_regular_file(folder, ignored))
        throw VerbError(kExitInput, fmt::format("{} is no folder", folder), kHint);
}

int save(const BaselineOptions& options, const Console& console) {
    refuseRunFolder(options.folder);
    refuseObstacle(options.folder);
    std::vector<compare::RunSummary> runs = readSummaries(options.names, options.workers, console);
    if (runs.empty())
        throw VerbError(kExitInput, fmt::format("{} holds no run: nothing to save", options.names.front()),
                        "rankscope baseline save RUN --dir DIR");
    for (const compare::RunSummary& run : runs)
        if (run.stepsNs.empty())
            throw VerbError(kExitInput, fmt::format("{} has no steps: it cannot be a baseline", run.name),
                            "mark steps with an NVTX range, or run more of them");
    for (compare::RunSummary& run : runs) {
        if (!options.label.empty()) run.label = options.label;
        if (const std::string unfinished = compare::unfinishedText(run); !unfinished.empty())
            console.warning(
                text::oneLine(fmt::format("{} did not finish, and is a poor baseline: {}", run.name, unfinished)));
    }
    const std::vector<fs::path> files = compare::saveToBaseline(runs, options.folder);
    for (size_t i = 0; i < files.size(); ++i)
        console.note(text::oneLine(fmt::format("{} -> {} ({})", runs[i].name, files[i].string(),
                                               text::bytesText(static_cast<double>(fs::file_size(files[i]))))));
    sayNext(options, console);
    return kExitOk;
}

void requireFolder(const std::string& folder) {
    refuseRunFolder(folder);
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return;
    refuseObstacle(folder);
    throw VerbError(kExitInput, fmt::format("there is no folder {}", text::oneLine(folder)),
                    fmt::format("rankscope baseline save RUN --dir {}", text::shellWord(folder)));
}

int list(const BaselineOptions& options, const Console& console) {
    requireFolder(options.folder);
    const std::vector<compare::RunSummary> runs = readSummaries({options.folder}, options.workers, console);
    std::string text;
    for (const compare::RunSummary& run : runs)
        text += fmt::format("{}  {}\n", text::oneLine(fs::path(run.file).stem().string()), describe(run));
    if (runs.empty()) console.note(text::oneLine(options.folder) + " holds no run yet");
    console.result(text);
    sayNext(options, console);
    return kExitOk;
}

int show(const BaselineOptions& options, const Console& console) {
    if (options.names.empty()) requireFolder(options.folder);
    const std::vector<compare::RunSummary> runs = readSummaries(
        options.names.empty() ? std::vector<std::string>{options.folder} : options.names, options.workers, console);
    std::string text;
    for (const compare::RunSummary& run : runs) {
        text += describe(run) + "\n";
        for (const auto& [key, value] : run.environment)
            if (!value.empty()) text += fmt::format("  {:<16} {}\n", text::oneLine(key), text::oneLine(value));
        for (const compare::FindingSummary& finding : run.findings)
            if (finding.verdict == "found")
                text += fmt::format("  finding          {} {}, {}{}\n", text::oneLine(finding.id),
                                    text::oneLine(finding.title), text::ranksText(finding.ranks), worthOf(finding));
    }
    console.result(text);
    sayNext(options, console);
    return kExitOk;
}

int prune(const BaselineOptions& options, const Console& console) {
    requireFolder(options.folder);
    for (const fs::path& file : compare::pruneBaseline(options.folder, static_cast<size_t>(options.keep)))
        console.note("removed " + text::oneLine(file.string()));
    console.next(fmt::format("rankscope baseline list --dir {}", text::shellWord(options.folder)));
    return kExitOk;
}

VerbError noSuchLabel(const BaselineOptions& options) {
    return {kExitInput,
            fmt::format("{} holds no run{}", text::oneLine(options.folder),
                        options.label.empty() ? "" : " with the label " + text::oneLine(options.label)),
            fmt::format("rankscope baseline list --dir {}", text::shellWord(options.folder))};
}

/// A change of the step that is wanted: later runs are compared with what came from there on.
int accept(const BaselineOptions& options, const Console& console) {
    requireFolder(options.folder);
    const std::vector<fs::path> accepted = compare::acceptInBaseline(options.folder, options.label);
    if (accepted.empty()) throw noSuchLabel(options);
    for (const fs::path& file : accepted) console.note("a level begins with " + text::oneLine(file.string()));
    sayNext(options, console);
    return kExitOk;
}

int removeLabel(const BaselineOptions& options, const Console& console) {
    requireFolder(options.folder);
    const std::vector<fs::path> removed = compare::removeFromBaseline(options.folder, options.label);
    if (removed.empty()) throw noSuchLabel(options);
    for (const fs::path& file : removed) console.note("removed " + text::oneLine(file.string()));
    return kExitOk;
}

std::string needSentence(const compare::RunsNeeded& needed) {
    if (!needed.betweenRuns)
        return fmt::format("how much runs differ is not known yet: {} runs of each change tell it", needed.runs);
    return fmt::format(
        "runs differ by {}: with {} runs of each change a regression of {} is found in {:.0f} of 100, even against "
        "the runs of a single change",
        text::percentText(*needed.betweenRuns), needed.runs, text::percentText(needed.size),
        std::floor(100 * *needed.found));
}

/// Prints a number and nothing else, for `for i in $(seq $runs)`.
int runs(const BaselineOptions& options, const Console& console) {
    refuseRunFolder(options.folder);
    refuseObstacle(options.folder);
    const CompareConfig config = projectConfig();
    compare::StepTimeOptions settings;
    settings.threshold = config.stepThreshold.value_or(settings.threshold);
    settings.resolution = config.resolution.value_or(settings.resolution);
    const std::vector<std::string> across = config.across.value_or(std::vector<std::string>{});
    std::error_code ignored;
    std::vector<compare::RunSummary> baseline;
    if (fs::is_directory(options.folder, ignored)) baseline = compare::readBaselineHeads(options.folder);
    const compare::RunsNeeded needed =
        compare::runsNeeded(std::move(baseline), settings, {across.begin(), across.end()});
    if (needed.isEnough())
        console.note(needSentence(needed));
    else
        console.warning(needSentence(needed) + "; longer runs or quieter machines find more");
    console.result(fmt::format("{}\n", needed.runs));
    return kExitOk;
}

using Act = int (*)(const BaselineOptions&, const Console&);

CLI::App* addAct(CLI::App& verb, Invocation& invocation, const char* name, const char* description,
                 const std::shared_ptr<BaselineOptions>& options, Act act) {
    auto* sub = verb.add_subcommand(name, description);
    sub->add_option("-d,--dir", options->folder, "Folder of the baseline")->type_name("DIR")->capture_default_str();
    setAction(*sub, invocation, [options, act, &invocation] {
        try {
            return act(*options, invocation.console);
        } catch (const compare::SummaryError& error) {
            throw VerbError(kExitInput, text::oneLine(error.what()), error.hint());
        }
    });
    return sub;
}

}  // namespace

void addBaselineVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<BaselineOptions>();
    auto* verb = app.add_subcommand(
        "baseline", "Small summaries of runs that later runs are compared with; a folder to commit or to cache");
    verb->group(kChangeGroup);
    verb->require_subcommand(1);
    auto* saving = addAct(*verb, invocation, "save", "Add runs to a baseline", options, save);
    saving->add_option("NAME", options->names, "Runs: names, run directories, .db files, or summaries")->required();
    saving->add_option("--label", options->label, "What the runs are of: a commit, a version")->type_name("TEXT");
    addWorkersOption(*saving, options->workers);
    addAct(*verb, invocation, "list", "The runs of a baseline", options, list);
    addAct(*verb, invocation, "show", "What a baseline, or one of its files, says", options, show)
        ->add_option("FILE", options->names, "Files or folders; the whole baseline when left out");
    addAct(*verb, invocation, "runs",
           "How many runs of each change a gate needs, by how much those of the baseline differ", options, runs);
    addAct(*verb, invocation, "accept", "Later runs are compared with these and what came after them", options, accept)
        ->add_option("--label", options->label, "Label of the runs; the newest when left out")
        ->type_name("TEXT");
    addAct(*verb, invocation, "remove", "Remove the runs of a label", options, removeLabel)
        ->add_option("--label", options->label, "What the runs were saved under")
        ->type_name("TEXT")
        ->required();
    addAct(*verb, invocation, "prune", "Remove old runs from a baseline", options, prune)
        ->add_option("--keep", options->keep, "Runs to keep, the youngest")
        ->check(CLI::Range(0, 1'000'000))
        ->capture_default_str();
}

}  // namespace rankscope::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/verbs/reference_framework.h"
#include "analyzer/cli/verbs/verb.h"
#include "reference/score/compare_score.h"
#include "reference/score/score.h"

namespace rankscope::cli {
namespace {

constexpr const char* kAllLinks = "all";

struct ScoreVerbOptions {
    score::ScoreOptions score;
    std::string scenarios;
    std::string keep;
    std::string format = "text";
    std::string output;
    std::string require;
    bool noFixed = false;
    bool list = false;
    score::CompareScoreOptions compare;
};

std::string render(const score::Scoreboard& board, const std::string& format) {
    if (format == "json") return score::renderJson(board);
    return format == "md" ? score::renderMarkdown(board) : score::renderText(board);
}

std::string progressLine(const score::ScenarioScore& scenario, size_t done, size_t all) {
    const char* verdict = !scenario.error.empty()                                   ? "failed"
                          : scenario.missed.empty() && scenario.falseAlarms.empty() ? "ok"
                                                                                    : "not as expected";
    return fmt::format("[{}/{}] {}: {} ({:.1f} s)", done, all, scenario.name, verdict, scenario.wallS);
}

std::string checkRequirement(const std::string& text) {
    try {
        score::parseRequirement(text);
    } catch (const score::ScoreError& error) {
        return error.what();
    }
    return {};
}

/// An option that the suite does not know would be ignored: whoever gives it believes otherwise.
void refuseForeignOptions(const CLI::App& verb, const ScoreVerbOptions& options) {
    const bool isCompare = options.score.suite == "compare";
    const std::vector<const char*> foreign =
        isCompare ? std::vector<const char*>{"--require", "--no-fixed", "--list",         "--links",
                                             "--worlds",  "--again",    "--follow-advice"}
                  : std::vector<const char*>{"--pool", "--pairs", "--cause-runs", "--cause-pairs"};
    for (const char* name : foreign)
        if (verb.count(name) > 0)
            throw VerbError(kExitUsage, fmt::format("{} is {} suite compare", name, isCompare ? "not for" : "only for"),
                            isCompare ? "what it requires is fixed, and exit status 1 tells; --only names its parts: "
                                        "same, slower-5, bimodal or a planted cause"
                                      : "rankscope reference score --suite compare");
    if (verb.count("--seed") > 0 && (options.score.suite == "core" || options.score.suite == "frameworks"))
        throw VerbError(kExitUsage, "--seed is for the suites that draw their scenarios",
                        "rankscope reference score --suite full --seed 7");
    if (options.score.again && verb.count("--links") > 0 && options.score.links != kAllLinks &&
        options.score.links != score::kUnknownLinks)
        throw VerbError(kExitUsage,
                        "--again keeps the links that the runs were recorded with: of --links it takes unknown alone",
                        "run them anew: leave --again out, or name another folder with --keep");
    if (isCompare && options.format == "md")
        throw VerbError(kExitUsage, "the suite compare is printed as text or json", "--format text");
}

int runCompare(ScoreVerbOptions options, const InstallLayout& layout, const Console& console) {
    options.compare.tool = layout.prefix / "bin/rankscope";
    options.compare.builtIns = layout.scenarios;
    options.compare.plan = layout.prefix / "share/rankscope/score/compare_suite.json";
    options.compare.keep = options.keep;
    options.compare.only = options.score.only;
    options.compare.jobs = options.score.jobs;
    options.compare.timeoutS = options.score.timeoutS;
    const score::CompareScoreboard board =
        score::runCompareScore(options.compare, [&](const std::string& line) { console.note(line); });
    giveResult(options.format == "json" ? score::renderJson(board) : score::renderText(board), options.output, console);
    const std::vector<std::string> unmet = score::unmet(board, {});
    for (const std::string& reason : unmet) console.error(reason);
    return unmet.empty() ? kExitOk : kExitGateFailed;
}

/// The worst exit status of all.
int verdictOf(const std::vector<score::Scoreboard>& boards, const std::string& require, const Console& console) {
    int status = kExitOk;
    for (const score::Scoreboard& board : boards) {
        for (const score::ScenarioScore& scenario : board.scenarios)
            if (!scenario.error.empty()) console.error(fmt::format("{}: {}", scenario.name, scenario.error));
        if (board.tally.errors > 0) {
            status = kExitInput;
        } else if (!score::meets(board, score::parseRequirement(require))) {
            console.error(
                fmt::format("links {}: precision {:.3f}, recall {:.3f} and {} of {} promises kept do not meet {}",
                            board.links, board.tally.total.precision(), board.tally.total.recall(),
                            board.tally.promisesKept, board.tally.promises, require));
            status = std::max<int>(status, kExitGateFailed);
        }
    }
    return status;
}

int run(ScoreVerbOptions options, const Console& console) {
    ::unsetenv("RANKSCOPE_LINKS");  // the user's links are not those of the scenarios
    const InstallLayout layout = findInstallLayout();
    if (options.score.suite == "compare") return runCompare(std::move(options), layout, console);
    options.score.tool = layout.prefix / "bin/rankscope";
    options.score.builtIns = layout.scenarios;
    options.score.frameworkJobs = layout.frameworkJobs;
    options.score.fullSuite = layout.prefix / "share/rankscope/score/full_suite.json";
    options.score.hangsSuite = layout.prefix / "share/rankscope/score/hangs_suite.json";
    options.score.scenarios = options.scenarios;
    options.score.keep = options.keep;
    options.score.runFixed = !options.noFixed;
    options.score.draw = options.compare.seed;
    if (options.list) {
        std::string names;
        for (const score::Scenario& scenario : score::scenariosOf(options.score)) names += scenario.name + "\n";
        console.result(names);
        return kExitOk;
    }
    if (options.score.suite == "frameworks" && options.scenarios.empty()) requireFrameworks(layout);
    const bool all = options.score.links == kAllLinks;
    std::vector<score::Scoreboard> boards;
    for (const std::string& links :
         all ? std::vector<std::string>{"told", "machine", "unknown"} : std::vector<std::string>{options.score.links}) {
        score::ScoreOptions settings = options.score;
        settings.links = links;
        if (all && !settings.keep.empty()) settings.keep /= links;
        boards.push_back(score::runScore(settings, [&](const score::ScenarioScore& scenario, size_t done, size_t of) {
            console.note(progressLine(scenario, done, of));
        }));
    }
    giveResult(all ? score::renderModes(boards, options.format) : render(boards.front(), options.format),
               options.output, console);
    return verdictOf(boards, options.require, console);
}

}  // namespace

void addReferenceScoreVerb(CLI::App& reference, Invocation& invocation) {
    auto options = std::make_shared<ScoreVerbOptions>();
    auto* verb = reference.add_subcommand("score", "Run scenarios and compare the findings with what was planted");
    auto* suite =
        verb->add_option("--suite", options->score.suite,
                         "core: every diagnosis and kind; full: core and generated scenarios; hangs: jobs that hang or "
                         "die, and such as end well; frameworks: "
                         "jobs of PyTorch, DeepSpeed, Megatron and Accelerate; compare: `rankscope "
                         "compare` on pairs of noisy runs")
            ->check(CLI::IsMember({"core", "full", "hangs", "frameworks", "compare"}))
            ->capture_default_str();
    verb->add_option("--scenarios", options->scenarios, "Every *.json of this folder instead of a suite")
        ->type_name("DIR")
        ->excludes(suite);
    addRepeatedOption(*verb, "--only", options->score.only, "PATTERN",
                      "Scenarios whose name contains this or matches it as a shell pattern; may be repeated");
    addFormatOption(*verb, options->format, {"text", "json", "md"}, "text, json or md");
    addOutputOption(*verb, options->output, "File for the result");
    verb->add_option("--require", options->require, "Exit with 1 below this, e.g. precision=0.98,recall=0.95")
        ->type_name("SHARES")
        ->check(checkRequirement);
    verb->add_option("--jobs", options->score.jobs, "Scenarios at a time; 0: one per core")->capture_default_str();
    verb->add_option("--timeout", options->score.timeoutS, "Seconds after which a run is ended and counts as failed")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    auto* keep =
        verb->add_option("--keep", options->keep, "Keep scenarios, runs and reports in this folder")->type_name("DIR");
    verb->add_flag("--again", options->score.again,
                   "Analyze the runs that --keep left there before, instead of running their scenarios once more")
        ->needs(keep);
    verb->add_option("--pool", options->compare.pool, "Suite compare: runs of a pool")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_option("--pairs", options->compare.pairs, "Suite compare: comparisons drawn from a pool")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_option("--cause-runs", options->compare.causeRuns,
                     "Suite compare: runs with, and without, each planted cause")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_option("--cause-pairs", options->compare.causePairs, "Suite compare: comparisons of each planted cause")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    verb->add_option("--seed", options->compare.seed, "Suites compare and full: other runs and other draws")
        ->check(CLI::Range(0, score::CompareScoreOptions::kLargestSeed))
        ->capture_default_str();
    verb->add_option("--links", options->score.links,
                     "What is known of the links: told, machine or unknown, as for `rankscope reference run`; all: "
                     "each in turn, side by side")
        ->check(CLI::IsMember({"told", "machine", "unknown", kAllLinks}))
        ->capture_default_str();
    verb->add_option("--worlds", options->score.worlds,
                     "Suites core and full: each scenario in a drawn world, where collectives differ from NCCL's model "
                     "as published tables do; another number draws others, 0 is the ideal world of the model")
        ->check(CLI::Range(0, score::CompareScoreOptions::kLargestSeed))
        ->capture_default_str();
    auto* light =
        addLightOption(*verb, options->score.light, "Record as rankscope run --light, or --light=kernels, does");
    addRingOption(*verb, light, options->score.ring);
    verb->add_flag("--no-fixed", options->noFixed, "Leave out the repaired twins, and with them the measured savings");
    verb->add_flag("--follow-advice", options->score.followAdvice,
                   "Ask `rankscope recommend` about each run, run it once more as advised where the scenario says how, "
                   "and compare what it gains with what was promised");
    verb->add_flag("--list", options->list, "Name the scenarios that would run");
    setAction(*verb, invocation, [options, verb, &invocation] {
        refuseForeignOptions(*verb, *options);
        try {
            return run(*options, invocation.console);
        } catch (const score::ScoreError& error) {
            throw VerbError(kExitInput, error.what());
        }
    });
}

}  // namespace rankscope::cli

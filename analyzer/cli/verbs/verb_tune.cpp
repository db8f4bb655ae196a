// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/install_layout.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/job/job_environment.h"
#include "analyzer/cli/job/launcher.h"
#include "analyzer/cli/job/run_name.h"
#include "analyzer/cli/tune/candidate_sources.h"
#include "analyzer/cli/tune/tune_rounds.h"
#include "analyzer/cli/tune/tune_sweep.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/recommend/tune.h"
#include "analyzer/text/output_file.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/folder_access.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;
using recommend::TuneCandidate;

struct TuneOptions {
    std::string name = "tune-%t";
    CandidateSources sources;
    std::string reference;
    std::string sweep;
    std::string links;
    std::string format = "text";
    std::vector<std::string> environment;
    int rounds = 5;
    double budgetS = 0, limitS = 0, minGainPercent = 0.5;
    bool virtualGpus = false, force = false;
};

// Refuses launchers whose ranks on other hosts would not get what the candidates set.
void refuseUnforwarded(const std::vector<std::string>& job, const std::vector<TuneCandidate>& candidates) {
    std::vector<std::string> names = preparedVariables({});
    std::set<std::string> ofCandidates;
    for (const TuneCandidate& candidate : candidates) {
        for (const auto& [name, value] : candidate.environment) ofCandidates.insert(name);
        if (!candidate.tunerRows.empty()) ofCandidates.insert("RANKSCOPE_TUNER_ROWS");
    }
    names.insert(names.end(), ofCandidates.begin(), ofCandidates.end());
    if (const std::string missing = missingForwardOptions(job, names); !missing.empty())
        throw VerbError(kExitUsage, "ranks that Open MPI starts on other hosts would not get the candidates' settings",
                        fmt::format("add to its command: {}", missing));
}

bool isTuning(const fs::path& folder) {
    return fs::exists(folder / "tune.json") || fs::exists(folder / "probe.log") || fs::exists(folder / "plan.txt");
}

// Takes away what a tuning leaves in its folder, and nothing else.
void emptyTuning(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        for (const char* ours : {"probe", "round", "candidate", "winner.", "tune.json", "plan.txt", "sweep"})
            if (name.starts_with(ours)) fs::remove_all(entry.path());
    }
}

fs::path makeFolder(const TuneOptions& options) {
    const fs::path folder = expandRunName(options.name, nullptr);
    if (fs::exists(folder) && (!fs::is_directory(folder) || !fs::is_empty(folder))) {
        if (!fs::is_directory(folder) || !isTuning(folder))
            throw VerbError(kExitInput, fmt::format("{} exists and is not a tuning", folder.string()),
                            "choose another name with -o");
        if (!options.force)
            throw VerbError(kExitInput, fmt::format("{} holds an earlier tuning", folder.string()),
                            "add --force to replace it, or choose another name with -o");
        emptyTuning(folder);
    }
    try {
        store::makeRunFolder(folder, false);
    } catch (const fs::filesystem_error& problem) {
        throw VerbError(kExitInput, fmt::format("cannot create {}: {}", folder.string(), problem.code().message()),
                        "choose a place that can be written with -o");
    }
    return folder;
}

// Returns what all runs have; the candidates' settings go over it.
Environment environmentOf(const TuneOptions& options) {
    Environment environment = currentEnvironment();
    setVariables(environment, options.environment);
    return environment;
}

std::string escapedName(const fs::path& path) {
    std::string name;
    for (char c : path.string()) name += c == '%' ? std::string("%%") : std::string(1, c);
    return name;
}

std::vector<std::string> commandOf(const TuneOptions& options, const std::vector<std::string>& job, const fs::path& run,
                                   const std::string& tunerFile) {
    std::vector<std::string> command = {ownProgram().string(), "-q"};
    if (!options.reference.empty()) {
        command.insert(command.end(), {"reference", "run", options.reference, "-o", escapedName(run)});
    } else {
        command.insert(command.end(), {"run", "-o", escapedName(run)});
        if (options.virtualGpus) command.push_back("--virtual");
        if (!options.links.empty()) command.insert(command.end(), {"--links", options.links});
    }
    if (!tunerFile.empty()) command.insert(command.end(), {"--tuner", tunerFile});
    if (options.reference.empty()) {
        command.push_back("--");
        command.insert(command.end(), job.begin(), job.end());
    }
    return command;
}

// The settings that won, for a shell, and their tuner rows for `run --tuner` or NCCL itself.
void keepWinner(const fs::path& folder, recommend::TuneReport& report) {
    if (!report.result.winner) return;
    const TuneCandidate& candidate = report.result.candidates[*report.result.winner].candidate;
    std::string lines =
        fmt::format("# {}: what `rankscope tune` found to help\n{}",
                    candidate.name.substr(0, candidate.name.find('\n')), recommend::shellLines(candidate.environment));
    if (!candidate.tunerRows.empty()) {
        report.tunerFile = (folder / "winner.csv").string();
        text::writeOutputFile(recommend::formatTunerCsv(candidate.tunerRows), report.tunerFile);
        lines += recommend::shellLines({{"NCCL_TUNER_PLUGIN", findInstallLayout().tuner.string()},
                                        {"NCCL_TUNER_CONFIG_FILE", fs::absolute(report.tunerFile).string()}});
    }
    report.environmentFile = (folder / "winner.env").string();
    text::writeOutputFile(lines, report.environmentFile);
}

void sayNext(const recommend::TuneReport& report, const Console& console) {
    if (!report.result.winner)
        console.next(fmt::format("rankscope analyze {}", text::shellWord(report.name + "/probe")));
    else if (!report.tunerFile.empty() && report.result.candidates[*report.result.winner].candidate.environment.empty())
        console.next(fmt::format("rankscope run --tuner {} -- …", text::shellWord(report.tunerFile)));
    else
        console.next(fmt::format(". {}", text::shellWord(report.environmentFile)));
}

int sweep(const TuneOptions& options, const std::vector<std::string>& launcher, const Console& console) {
    if (!options.sources.empty() || !options.reference.empty())
        throw VerbError(kExitUsage,
                        "--sweep tries every algorithm and protocol: it takes no candidates and no --reference",
                        "measure its result in the job afterwards: rankscope tune --tuner FILE -- JOB");
    if (launcher.empty())
        throw VerbError(kExitUsage, "--sweep needs the job's launcher behind `--`",
                        "rankscope tune --sweep NAME -- mpirun -n 8");
    TuneCandidate anyRows;
    anyRows.tunerRows.emplace_back();
    refuseUnforwarded(launcher, {anyRows});
    SweepRequest request{.trace = options.sweep,
                         .environment = environmentOf(options),
                         .limitS = options.limitS,
                         .json = options.format == "json"};
    requireCommand(launcher.front(), request.environment);
    request.folder = makeFolder(options);
    request.command = [&](const fs::path& run, const std::string& tunerFile, const std::vector<std::string>& program) {
        std::vector<std::string> words = launcher;
        words.insert(words.end(), program.begin(), program.end());
        return commandOf(options, words, run, tunerFile);
    };
    sweepCollectives(request, console);
    return kExitOk;
}

std::vector<std::string> commandShown(const TuneOptions& options, const std::vector<std::string>& job) {
    return options.reference.empty() ? job
                                     : std::vector<std::string>{"rankscope", "reference", "run", options.reference};
}

std::string render(const recommend::TuneReport& report, const std::string& format) {
    return format == "json" ? recommend::renderTuneJson(report) : recommend::renderTuneText(report);
}

int tune(const TuneOptions& options, const std::vector<std::string>& job, const Console& console) {
    if (!options.sweep.empty()) return sweep(options, job, console);
    if (job.empty() == options.reference.empty())
        throw VerbError(kExitUsage,
                        job.empty() ? "no command to run" : "--reference runs a job of its own: no command behind `--`",
                        "rankscope tune --candidate NCCL_ALGO=ring -- torchrun …");
    if (launchedRankFromEnvironment())
        throw VerbError(kExitUsage, "a launcher starts this process: tune starts the whole job itself, again and again",
                        "write it in front of the launcher: rankscope tune … -- mpirun …");
    recommend::TuneReport report;
    report.command = commandShown(options, job);
    const auto candidates = candidatesOf(options.sources, report.notes);
    if (candidates.empty()) {
        report.name = "nothing to try";
        console.result(render(report, options.format));
        return kExitOk;
    }
    refuseUnforwarded(job, candidates);
    if (!job.empty()) requireCommand(job.front(), currentEnvironment());
    TunePlan plan{.environment = environmentOf(options),
                  .rounds = options.rounds,
                  .budgetS = options.budgetS,
                  .limitS = options.limitS};
    const fs::path folder = plan.folder = makeFolder(options);

    report.name = folder.string();
    report.virtualGpus = options.virtualGpus || !options.reference.empty();
    report.rounds = options.rounds;
    report.result.rules.minGainShare = options.minGainPercent / 100;
    for (const TuneCandidate& candidate : candidates) report.result.candidates.push_back({candidate});
    plan.command = [&](const std::string& run, const std::string& tunerFile) {
        return commandOf(options, job, folder / run, tunerFile);
    };
    measureRounds(plan, report.result, report.notes, console);
    keepWinner(folder, report);
    text::writeOutputFile(render(report, "json"), folder / "tune.json");
    console.result(render(report, options.format));
    sayNext(report, console);
    return kExitOk;
}

std::string checkPositive(const std::string& text) {
    return finiteNumber(text).value_or(0) > 0 ? "" : fmt::format("'{}' is no number above 0", text);
}

}  // namespace

void addTuneVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<TuneOptions>();
    auto* verb = app.add_subcommand("tune", "Run a job with and without each candidate setting, and keep what helps");
    verb->group(kChangeGroup);
    invocation.jobVerbs[verb] = JobUse::optional;  // --reference names a job, too
    verb->footer(
        "The command, with its launcher, follows behind `--`:\n"
        "  rankscope tune --candidate NCCL_PROTO=simple --tuner rows.csv -- torchrun --nproc-per-node 8 train.py\n"
        "Give the job few steps: it runs rounds x (candidates + 1) + 1 times.");
    verb->add_option("-o,--output", options->name, "Folder for the runs and the result; may hold %h, %t, %q{VAR}")
        ->type_name("NAME")
        ->capture_default_str();
    addRepeatedOption(*verb, "--candidate", options->sources.candidates, "SETTINGS",
                      "Settings to try, NAME=VALUE[,NAME=VALUE]; may be repeated");
    addRepeatedOption(*verb, "--candidates", options->sources.candidateFiles, "FILE",
                      "File with a candidate per line, or JSON as of `recommend --format json`");
    addRepeatedOption(*verb, "--tuner", options->sources.tunerFiles, "FILE",
                      "Tuner file to try (docs/tuner-csv.md); may be repeated");
    verb->add_option("--from-recommend", options->sources.fromRecommend, "Try what `rankscope recommend` says of a run")
        ->type_name("RUN");
    verb->add_option("--rounds", options->rounds, "Runs of each setting")
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(2, 1000));
    verb->add_option("--budget", options->budgetS, "Start no round that would end after so many seconds")
        ->type_name("S")
        ->check(checkPositive);
    verb->add_option("--limit", options->limitS,
                     "End a run after so many seconds; 3 times the default's and 30 s when left out")
        ->type_name("S")
        ->check(checkPositive);
    verb->add_option("--min-gain", options->minGainPercent, "Gain worth a setting, in % of the step")
        ->type_name("PERCENT")
        ->capture_default_str()
        ->check(checkPositive);
    addFormatOption(*verb, options->format, {"text", "json"}, "text or json");
    addRepeatedOption(*verb, "--env", options->environment, "NAME=VALUE",
                      "Set a variable for every run; may be repeated");
    addLinksOption(*verb, options->links);
    verb->add_flag("--virtual", options->virtualGpus, "Use the built-in virtual GPUs");
    verb->add_option("--reference", options->reference, "Tune a job of the reference harness instead of a command")
        ->type_name("SCENARIO");
    verb->add_option("--sweep", options->sweep,
                     "Instead of a job, repeat the collectives of a run under every algorithm and protocol; the "
                     "launcher follows behind --")
        ->type_name("RUN");
    verb->add_flag("--force", options->force, "Replace an earlier tuning of that name");
    setAction(*verb, invocation, [options, &invocation] { return tune(*options, invocation.job, invocation.console); });
}

}  // namespace rankscope::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <regex>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/user_config.h"
#include "analyzer/cli/job/job_environment.h"
#include "analyzer/cli/job/launcher.h"
#include "analyzer/cli/job/recording.h"
#include "analyzer/cli/job/ring_watch.h"
#include "analyzer/cli/job/run_directory.h"
#include "analyzer/cli/job/run_name.h"
#include "analyzer/cli/stacks/hang_watch.h"
#include "analyzer/cli/tune/tuner_file.h"
#include "analyzer/cli/verbs/metrics_options.h"
#include "analyzer/cli/verbs/verb.h"

namespace rankscope::cli {
namespace {

struct RunOptions {
    std::string name = kDefaultRunName;
    RecordingOptions recording;
    std::string maxSize = "2GiB";
    std::string hangTimeout = "5m";
    std::string links;
    std::string tuner;
    std::vector<std::string> environment;
    std::string metrics, metricsFile;
    bool hangTimeoutGiven = false;
    bool force = false;
    bool noCollect = false;
    bool noHealth = false;
    bool noEnvironment = false;
    bool share = false;
    bool virtualGpus = false;
};

std::string checkTrace(const std::string& text) {
    size_t begin = 0;
    while (begin <= text.size()) {
        const size_t end = std::min(text.find(',', begin), text.size());
        const std::string source = text.substr(begin, end - begin);
        if (source != "cuda" && source != "nccl" && source != "nvtx" && source != "api")
            return fmt::format("'{}' is no source: choose from cuda, nccl, nvtx and api", source);
        begin = end + 1;
    }
    return {};
}

std::string checkCaptureRange(const std::string& text) {
    static const std::regex kForms("none|cudaProfilerApi|nvtx:.+|steps:([0-9]{1,18})-([0-9]{1,18})");
    std::smatch parts;
    if (!std::regex_match(text, parts, kForms)) return "write none, cudaProfilerApi, nvtx:NAME or steps:A-B";
    if (parts[1].matched && std::stoll(parts[1]) > std::stoll(parts[2]))
        return fmt::format("'{}' ends before it begins: write steps:A-B with A not above B", text);
    return {};
}

// CLI11's own check tells the allowed range as a number of 309 digits.
std::string checkSeconds(const std::string& text, bool mayBeZero) {
    const std::optional<double> value = finiteNumber(text);
    if (value && (*value > 0 || (mayBeZero && *value == 0))) return {};
    return fmt::format("'{}' is no time: write seconds, {}", text, mayBeZero ? "0 or more" : "more than 0");
}

// "500M", "2GiB", "1.5g", "4096": binary multiples for K, M, G and T with or without "iB"/"B"; nothing for what is no
// size.
std::string checkSlowStep(const std::string& text) {
    constexpr double kLeast = 1.1, kMost = 1e6;
    const auto value = finiteNumber(text);
    if (value && *value >= kLeast && *value <= kMost) return "";
    return fmt::format("'{}' is no factor: write {} to {:.0f}", text, kLeast, kMost);
}

std::optional<int64_t> parseBytes(const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (end == text.c_str()) return std::nullopt;
    std::string unit;
    for (const unsigned char c : std::string_view(end))
        if (!std::isspace(c)) unit += static_cast<char>(std::tolower(c));
    double factor = 1;
    if (!unit.empty() && unit != "b") {
        const size_t power = std::string_view("kmgt").find(unit[0]);
        const std::string rest = unit.substr(1);
        if (power == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib")) return std::nullopt;
        factor = std::pow(1024.0, static_cast<double>(power + 1));
    }
    const double bytes = number * factor;
    if (!(bytes >= 1) || bytes >= static_cast<double>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(bytes);
}

std::string checkSize(const std::string& text) {
    return parseBytes(text) ? "" : fmt::format("'{}' is not a size: write for example 500M or 2GiB", text);
}

bool hasSource(const RecordingOptions& recording, std::string_view source) {
    return ("," + recording.trace + ",").find(fmt::format(",{},", source)) != std::string::npos;
}

// Progress is known only of what is recorded, from begin to end. The option that keeps it unknown; empty: none does.
std::string hidesProgress(const RecordingOptions& recording) {
    if (recording.captureRange != "none") return "--capture-range";
    if (recording.durationS > 0) return "--duration";
    return hasSource(recording, "cuda") || hasSource(recording, "nccl") ? "" : "--trace " + recording.trace;
}

// Nothing: hangs are not watched for.
std::unique_ptr<HangWatch> watchFor(const RunOptions& options, const RecordingOptions& recording,
                                    const std::filesystem::path& run) {
    const double seconds = *secondsOf(options.hangTimeout);
    if (seconds == 0 || !hidesProgress(recording).empty()) return nullptr;
    return std::make_unique<HangWatch>(run, static_cast<int64_t>(seconds * kNsPerS),
                                       static_cast<int64_t>(recording.delayS * kNsPerS),
                                       recording.isLight() || !hasSource(recording, "cuda"));
}

// Nothing: the job has no ring.
std::unique_ptr<RingWatch> ringOf(const RecordingOptions& recording, const std::filesystem::path& run) {
    const double ringS = recording.isLight() ? *secondsOf(recording.ring) : 0;
    return ringS == 0 ? nullptr : std::make_unique<RingWatch>(run, ringS);
}

// Either may be null.
JobWatch watchOf(HangWatch* hangs, RingWatch* ring, const Console& console) {
    if (hangs == nullptr && ring == nullptr) return {};
    const auto tell = [hangs, ring, &console] {
        std::vector<std::string> notes;
        if (hangs != nullptr) notes = hangs->takeNotes();
        if (ring != nullptr) std::ranges::move(ring->takeNotes(), std::back_inserter(notes));
        for (const std::string& note : notes)
            if (!console.isQuiet()) console.note(note);
    };
    constexpr int kRingPeriodMs = 1000;
    JobWatch watch;
    watch.periodMs = ring == nullptr    ? hangs->periodMs()
                     : hangs == nullptr ? kRingPeriodMs
                                        : std::min(kRingPeriodMs, hangs->periodMs());
    watch.look = [=] {
        const int told = hangs == nullptr ? 0 : hangs->timesTold();
        if (hangs != nullptr) hangs->look();
        if (ring != nullptr) ring->look();
        if (ring != nullptr && hangs != nullptr && hangs->timesTold() > told) ring->ranksStandStill();
        tell();
    };
    watch.jobHasEnded = [=] {
        if (hangs != nullptr) hangs->jobHasEnded();
        if (ring != nullptr) ring->finish();
        tell();
    };
    if (ring == nullptr) return watch;
    watch.ownSignal = RingWatch::triggerSignal();
    watch.onOwnSignal = [=] {
        ring->trigger();
        tell();
    };
    return watch;
}

JobSettings settingsOf(const RunOptions& options, const std::vector<recommend::TunerRow>& tunerRows) {
    JobSettings settings{.recording = options.recording,
                         .virtualGpus = options.virtualGpus,
                         .links = options.links,
                         .tunerRows = tunerRowsForJob(tunerRows),
                         .extra = options.environment,
                         .noEnvironment = options.noEnvironment};
    settings.recording.maxBytes = *parseBytes(options.maxSize);
    if (options.recording.isLight()) settings.recording.trace = options.recording.lightTrace();
    return settings;
}

RunDescription describe(const RunOptions& options, const JobSettings& settings, const std::vector<std::string>& command,
                        const LaunchedRank* launched) {
    // One wrapper with the launcher inside is a job of its own, whatever ran before it, unless it starts one node of
    // several.
    const auto ofNodes = launched ? std::nullopt : nodeJobKey(command, currentEnvironment());
    const std::string inside = fmt::format("inside:{}:{}", getpid(), std::time(nullptr));
    RunDescription description{.command = command,
                               .jobKey = launched ? launched->jobKey : ofNodes.value_or(inside),
                               .onePerNode = ofNodes.has_value(),
                               .launcher = launched ? launched->launcher : "inside",
                               .worldSize = launched ? launched->worldSize : 0,
                               .virtualGpus = options.virtualGpus,
                               .shared = options.share,
                               .links = options.links,
                               .recording = settings.recording,
                               .tunerRows = settings.tunerRows,
                               .optionVariables = options.noEnvironment ? std::map<std::string, std::string>{}
                                                                        : forcingVariables(options.environment)};
    if (!launched && !options.noEnvironment) description.startVariables = forcingVariables(currentEnvironment());
    return description;
}

std::filesystem::path placeOf(const RunOptions& options, const LaunchedRank* outside) {
    const auto path = expandRunName(options.name, outside);
    if (outside || options.name != kDefaultRunName) return path;
    // Nobody chose this name, so the second job of one second is no reason to refuse.
    auto free = path;
    for (int number = 2; std::filesystem::exists(free); ++number) free = fmt::format("{}-{}", path.string(), number);
    return free;
}

// Looks at the run beside the job, one on each host; empty: nobody asked for metrics, or another wrapper of this host
// does it.
std::vector<std::string> metricsProgram(const RunOptions& options, const RunDirectory& run, const Console& console) {
    if ((options.metrics.empty() && options.metricsFile.empty()) || !run.isFirstOfHost()) return {};
    std::vector<std::string> command = {ownProgram().string(), "top", run.path().string(), "--format", "none",
                                        "--while-input"};
    if (!options.metrics.empty()) command.insert(command.end(), {"--metrics", options.metrics});
    if (!options.metricsFile.empty())
        command.insert(command.end(), {"--metrics-file", std::filesystem::absolute(options.metricsFile).string()});
    if (console.isQuiet()) command.push_back("-q");
    return command;
}

// The processes of one job share their virtual GPUs, also those of several wrappers, as they share the run: by what
// their launchers have in common.
std::string virtualJobOf(const RunDescription& description, const LaunchedRank* outside) {
    if (!outside && !description.onePerNode) return fmt::format("run-{}-{}", getpid(), std::time(nullptr));
    return fmt::format("job-{:016x}-{}", std::hash<std::string>()(description.jobKey), outside ? outside->attempt : 0);
}

bool isOnSeveralHosts(const RunDescription& description, const LaunchedRank* outside) {
    return description.onePerNode || (outside && outside->localSize > 0 && outside->worldSize > outside->localSize);
}

int run(const RunOptions& options, const std::vector<std::string>& command, const Console& console) {
    if (command.empty())
        throw VerbError(kExitUsage, "no command to run", "write it behind `--`: rankscope run -o NAME -- torchrun …");
    if (options.recording.slowStep > 0 && *secondsOf(options.recording.ring) == 0)
        throw VerbError(kExitUsage, "--slow-step dumps the ring, and --ring off leaves none",
                        "leave one of them out: without a ring the run itself holds all of it");
    if (options.recording.sumsKernels() && *secondsOf(options.recording.ring) == 0)
        throw VerbError(kExitUsage, "--light=kernels sums up what the ring lets go, and --ring off keeps all",
                        "leave one of them out");
    const InstallLayout layout = findInstallLayout();
    const auto launched = launchedRankFromEnvironment();
    const LaunchedRank* outside = launched ? &*launched : nullptr;

    const auto tunerRows = options.tuner.empty() ? std::vector<recommend::TunerRow>{} : readTunerFile(options.tuner);
    JobSettings settings = settingsOf(options, tunerRows);
    // What can be known to fail is said before anything is created.
    const Environment looked = prepareEnvironment(layout, settings);
    requireCommand(command.front(), looked);

    if (!hasSource(options.recording, "cuda") && !options.recording.isLight() && !console.isQuiet() &&
        (!outside || outside->rank == 0))
        console.warning(
            fmt::format("--trace {} leaves the devices out: `rankscope analyze` will have no kernels to judge; view "
                        "and export show what is recorded",
                        options.recording.trace));

    if (const std::string by = hidesProgress(settings.recording);
        options.hangTimeoutGiven && *secondsOf(options.hangTimeout) > 0 && !by.empty() && !console.isQuiet() &&
        (!outside || outside->rank == 0))
        console.warning(
            fmt::format("--hang-timeout has no effect with {}: progress is known only of what is recorded", by));

    const std::string missing = missingForwardOptions(command, preparedVariables(settings));
    // Ranks that choose other algorithms than their peers hang the job.
    if (!missing.empty() && !settings.tunerRows.empty())
        throw VerbError(kExitUsage,
                        "--tuner: ranks that Open MPI starts on other hosts would not get the rows, and hang the job",
                        fmt::format("add to its command: {}", missing));

    if (!options.tuner.empty() && (!outside || outside->rank == 0))
        if (const std::string note = tunerNote(options.tuner, tunerRows, looked); !note.empty()) console.note(note);

    const auto path = placeOf(options, outside);
    const RunDescription description = describe(options, settings, command, outside);
    const std::string slot = outside                  ? outside->slot()
                             : description.onePerNode ? fmt::format("node.{}", getpid())
                                                      : "job";
    RunDirectory directory(path, description, {slot, outside ? outside->localSize : 1}, options.force);

    settings.captureFolder = directory.captureFolder();
    if (settings.virtualGpus) settings.virtualJob = virtualJobOf(description, outside);
    if (!missing.empty())
        console.note(fmt::format(
            "ranks that Open MPI starts on other hosts are recorded only if you add to its command: {}", missing));

    const ProcessToStart job{command, prepareEnvironment(layout, settings)};
    const auto hangs = watchFor(options, settings.recording, directory.path());
    const auto ring = ringOf(settings.recording, directory.path());
    const JobWatch watch = watchOf(hangs.get(), ring.get(), console);
    const ProcessEnd end = record({directory,
                                   {job},
                                   path.string(),
                                   !options.noCollect,
                                   0,
                                   false,
                                   watch,
                                   !options.noHealth,
                                   metricsProgram(options, directory, console),
                                   isOnSeveralHosts(description, outside)},
                                  console);
    if (outside) forgetRunName(options.name, *outside);
    endLike(end);
}

}  // namespace

void addRunVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<RunOptions>();
    auto* verb =
        app.add_subcommand("run", "Run a job under the injector and record it; the exit status is the job's own");
    verb->group(kRecordGroup);
    invocation.jobVerbs[verb] = JobUse::required;
    verb->footer(
        "The command follows behind `--`:\n"
        "  rankscope run -o NAME -- torchrun --nproc-per-node 8 train.py     launcher inside\n"
        "  mpirun -n 8 rankscope run -o NAME -- ./train                      launcher outside, one wrapper a rank");
    verb->add_option("-o,--output", options->name, "Run directory; may hold %h (host), %t (start time), %q{VAR}")
        ->type_name("NAME")
        ->capture_default_str();
    auto* trace = verb->add_option("--trace", options->recording.trace, "Sources to record")
                      ->type_name("LIST")
                      ->capture_default_str()
                      ->check(checkTrace);
    auto* light =
        addLightOption(*verb, options->recording.light,
                       "Record NCCL calls, when they were on the device, and NVTX ranges; no device activity, for long "
                       "jobs; --light=kernels: and the kernels of each step as summaries")
            ->excludes(trace);
    addRingOption(*verb, light, options->recording.ring);
    verb->add_option(
            "--slow-step", options->recording.slowStep,
            "With --light: dump the ring into NAME/dumps when a step takes so many times the median of the "
            "last 32, at most 8 times; steps are NVTX push/pop ranges that are called so (ProfilerStep#N, iteration 7)")
        ->type_name("K")
        ->needs(light)
        ->check(checkSlowStep);
    verb->add_option("--capture-range", options->recording.captureRange,
                     "Part to record: none (all), cudaProfilerApi, nvtx:NAME, steps:A-B")
        ->type_name("RANGE")
        ->capture_default_str()
        ->check(checkCaptureRange);
    verb->add_option("--delay", options->recording.delayS, "Start recording after so many seconds")
        ->type_name("S")
        ->check([](const std::string& text) { return checkSeconds(text, true); });
    verb->add_option("--duration", options->recording.durationS, "Record for so many seconds")
        ->type_name("S")
        ->check([](const std::string& text) { return checkSeconds(text, false); });
    verb->add_option("--max-size", options->maxSize, "Most to record per rank; the first part is kept")
        ->type_name("BYTES")
        ->capture_default_str()
        ->check(checkSize);
    auto* hangTimeout =
        verb->add_option(
                "--hang-timeout", options->hangTimeout,
                "Read the stacks of ranks that record no progress for so long (90s, 5m, 1h, off) into NAME/stacks")
            ->type_name("TIME")
            ->capture_default_str()
            ->check(checkTime);
    addRepeatedOption(*verb, "--env", options->environment, "NAME=VALUE",
                      "Set a variable for the job; may be repeated");
    addLinksOption(*verb, options->links);
    verb->add_option("--tuner", options->tuner,
                     "NCCL algorithm and protocol by collective, size and communicator (docs/tuner-csv.md)")
        ->type_name("FILE");
    addMetricsOptions(*verb, options->metrics, options->metricsFile);
    verb->add_flag("--no-health", options->noHealth,
                   "Do not read how devices and ports do (clocks, throttling, errors; NVML and sysfs) meanwhile");
    verb->add_flag("--no-collect", options->noCollect, "Leave the capture files as they are");
    verb->add_flag("--no-environment", options->noEnvironment,
                   "Record no variable of the environment at all (`rankscope doctor --privacy` lists those that are)");
    addShareOption(*verb, options->share);
    verb->add_flag("--virtual", options->virtualGpus, "Use the built-in virtual GPUs");
    verb->add_flag("--force", options->force, "Replace an earlier run of that name");
    setAction(*verb, invocation, [options, hangTimeout, &invocation] {
        // What a person says of the links here is not true of virtual ones, and stands behind the environment.
        if (options->links.empty() && linksOfEnvironment().empty() && !options->virtualGpus)
            options->links = userConfig().links;
        options->hangTimeoutGiven = hangTimeout->count() > 0;
        return run(*options, invocation.job, invocation.console);
    });
}

}  // namespace rankscope::cli

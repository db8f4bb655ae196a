// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/console/terminal_size.h"
#include "analyzer/cli/job/job_environment.h"
#include "analyzer/cli/job/recording.h"
#include "analyzer/cli/job/run_directory.h"
#include "analyzer/cli/job/run_name.h"
#include "analyzer/cli/tune/tuner_file.h"
#include "analyzer/cli/verbs/reference_framework.h"
#include "analyzer/cli/verbs/reference_scenario.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/output_file.h"
#include "analyzer/text/plain_text.h"
#include "analyzer/text/terminal_text.h"
#include "analyzer/text/units.h"
#include "collector/store/folder_access.h"

namespace rankscope::cli {
namespace {

// Limits how long the peers of a dead rank may go on before they are ended: virtual GPUs need a moment to bring what
// was issued to its end.
constexpr int kGracePeriodMs = 3000;

constexpr int kPort = 29500;  // nobody listens: the workloads meet by a file that the job's key names

struct ReferenceRunOptions {
    std::string scenario;
    std::string name;
    std::string tuner;
    std::string links = "machine";
    bool fixed = false;
    std::string light;
    std::string ring = kDefaultRing;
    bool force = false;
    bool noCollect = false;
    bool share = false;
};

struct ReferenceListOptions {
    std::string suite = "core";
    std::string format = "text";
};

// The ranks as torchrun would start them, one process each, so that no launcher needs to be installed.
std::vector<ProcessToStart> ranksOf(const InstallLayout& layout, const ReferenceScenario& scenario,
                                    const JobSettings& settings) {
    const Environment common = prepareEnvironment(layout, settings);
    std::vector<ProcessToStart> ranks;
    for (int rank = 0; rank < scenario.worldSize; ++rank) {
        Environment environment = common;
        for (const auto& [name, value] : {std::pair{"RANK", rank},
                                          {"WORLD_SIZE", scenario.worldSize},
                                          {"LOCAL_RANK", rank % scenario.ranksPerNode},
                                          {"LOCAL_WORLD_SIZE", scenario.ranksPerNode},
                                          {"MASTER_PORT", kPort}})
            setVariable(environment, name, std::to_string(value));
        setVariable(environment, "MASTER_ADDR", "localhost");
        if (scenario.nodes > 1)
            setVariable(environment, "RANKSCOPE_HOST", fmt::format("node{}", rank / scenario.ranksPerNode));
        ranks.push_back({{layout.workload.string(), settings.scenario}, environment});
    }
    return ranks;
}

std::vector<ProcessToStart> processesOf(const InstallLayout& layout, const ReferenceScenario& scenario,
                                        const JobSettings& settings) {
    return scenario.script ? launchersOf(layout, scenario, settings) : ranksOf(layout, scenario, settings);
}

// What the job's processes find when they start: what the user set, and what a framework's job sets besides.
Environment startEnvironment(const std::string& scenario) {
    Environment environment = currentEnvironment();
    const nlohmann::json document = nlohmann::json::parse(scenario, nullptr, false);
    const nlohmann::json::json_pointer place("/framework/environment");
    if (document.is_object() && document.contains(place))
        for (const auto& [name, value] : document.at(place).items())
            if (value.is_string() && getVariable(environment, name).empty()) setVariable(environment, name, value);
    return environment;
}

int runScenario(const ReferenceRunOptions& options, const Console& console) {
    ::unsetenv("RANKSCOPE_LINKS");  // the user's links are not those of the scenario
    const InstallLayout layout = findInstallLayout();
    const auto file = findScenario(layout, options.scenario);
    const std::string text = options.fixed ? fixedScenario(layout, file) : readFile(file);
    const ReferenceScenario scenario = checkScenario(layout, file);
    if (scenario.script) requireFrameworks(layout);  // before anything is created

    const auto rows = options.tuner.empty() ? std::vector<recommend::TunerRow>{} : readTunerFile(options.tuner);
    const std::string tunerRows = tunerRowsForJob(rows);
    if (!options.tuner.empty())
        if (const std::string note = tunerNote(options.tuner, rows, currentEnvironment()); !note.empty())
            console.note(note);

    const std::string name = options.name.empty() ? scenario.name + (options.fixed ? "-fixed" : "") : options.name;
    const auto path = expandRunName(name, nullptr);
    const std::string program = scenario.script ? scenario.script->script : layout.workload.string();
    RunDescription description{.command = {program, "scenario.json"},
                               .jobKey = fmt::format("inside:{}:{}", getpid(), std::time(nullptr)),
                               .launcher = "inside",
                               .worldSize = scenario.worldSize,
                               .virtualGpus = true,
                               .shared = options.share,
                               .links = options.links == "told" ? scenario.links : "",
                               .scenario = scenario.name,
                               .tunerRows = tunerRows,
                               .startVariables = forcingVariables(startEnvironment(text))};
    RecordingOptions recording{.light = options.light, .ring = options.ring};
    if (recording.isLight()) recording.trace = recording.lightTrace();
    if (recording.isLight()) description.recording = recording;
    RunDirectory directory(path, description, {"job", 1}, options.force);

    const JobSettings settings{.captureFolder = directory.captureFolder(),
                               .recording = recording,
                               .virtualGpus = true,
                               .virtualJob = fmt::format("reference-{}-{}", getpid(), std::time(nullptr)),
                               .scenario = (directory.path() / "scenario.json").string(),
                               .links = description.links,
                               .hideMachineLinks = options.links == "unknown",
                               .tunerRows = tunerRows};
    text::writeOutputFile(text, settings.scenario);
    store::setFileMode(settings.scenario);
    // The overrides may change the size of the job.
    const ReferenceScenario started = options.fixed ? checkScenario(layout, settings.scenario) : scenario;

    console.note(fmt::format("{}: {} ranks on {}", scenario.name, started.worldSize,
                             text::countedText(started.nodes, "virtual node")));
    endLike(record(
        {directory, processesOf(layout, started, settings), path.string(), !options.noCollect, kGracePeriodMs, true},
        console));
}

int list(const ReferenceListOptions& options, const Console& console) {
    const InstallLayout layout = findInstallLayout();
    nlohmann::json entries = nlohmann::json::array();
    std::string text;
    for (const auto& file : scenariosIn(options.suite == "core" ? layout.scenarios : layout.frameworkJobs)) {
        const ReferenceScenario scenario = checkScenario(layout, file);
        const nlohmann::json source = nlohmann::json::parse(readFile(file), nullptr, false);
        const nlohmann::json expected =
            source.is_object() ? source.value("expect", nlohmann::json::array()) : nlohmann::json::array();
        entries.push_back({{"name", file.stem().string()},
                           {"description", scenario.description},
                           {"kind", scenario.kind},
                           {"world_size", scenario.worldSize},
                           {"nodes", scenario.nodes},
                           {"faults", scenario.faults},
                           {"expect", expected}});
        text += fmt::format("{:<24} {:<5} {:>3} ranks  {}\n", file.stem().string(), scenario.kind, scenario.worldSize,
                            scenario.description);
    }
    console.result(options.format == "json" ? entries.dump(2) + "\n" : text);
    console.next("rankscope reference show NAME");
    return kExitOk;
}

std::string valueText(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

// "straggler: rank 3, factor 1.5"
std::string faultText(const nlohmann::json& fault) {
    std::string details;
    for (const auto& [name, value] : fault.items())
        if (name != "kind") details += fmt::format("{}{} {}", details.empty() ? "" : ", ", name, valueText(value));
    return fault.value("kind", "unknown") + (details.empty() ? "" : ": " + details);
}

std::string truthText(const nlohmann::json& expected) {
    const std::string id = expected.value("id", "");
    const diagnose::Diagnosis* entry = diagnose::findDiagnosis(id);
    std::string text = id + (entry != nullptr ? fmt::format(" {}", entry->title) : "");
    if (const auto ranks = expected.find("ranks"); ranks != expected.end() && ranks->is_array() && !ranks->empty()) {
        std::vector<int> numbers;
        for (const auto& rank : *ranks)
            if (rank.is_number_integer()) numbers.push_back(rank.get<int>());
        text += ", " + text::ranksText(numbers);
    }
    return text;
}

// What of `repaired` differs from `job`, a line each.
void addDifferences(const nlohmann::json& overrides, const std::string& path, std::vector<std::string>& lines) {
    for (const auto& [name, value] : overrides.items()) {
        const std::string key = path.empty() ? name : path + "." + name;
        if (value.is_object())
            addDifferences(value, key, lines);
        else
            lines.push_back(key == "faults" && value.empty() ? "without the fault"
                                                             : fmt::format("{} = {}", key, valueText(value)));
    }
}

void addLines(std::string_view label, const std::vector<std::string>& lines, size_t columns, std::string& out) {
    for (size_t i = 0; i < lines.size(); ++i)
        out += text::wrapped(text::plainText(lines[i]), fmt::format("  {:<10}", i == 0 ? label : ""), columns);
}

int show(const std::string& name, const Console& console) {
    const InstallLayout layout = findInstallLayout();
    const auto file = findScenario(layout, name);
    const ReferenceScenario scenario = checkScenario(layout, file);
    const nlohmann::json source = nlohmann::json::parse(readFile(file), nullptr, false);
    std::vector<std::string> faults, truth, allowed, repair;
    for (const auto& fault : source.value("faults", nlohmann::json::array())) faults.push_back(faultText(fault));
    for (const auto& expected : source.value("expect", nlohmann::json::array())) truth.push_back(truthText(expected));
    for (const auto& id : source.value("allow", nlohmann::json::array()))
        allowed.push_back(id.is_string() ? truthText({{"id", id}}) : truthText(id));
    addDifferences(source.value("fixed", nlohmann::json::object()), "", repair);
    if (faults.empty()) faults.push_back("none of the harness: the job itself is as it should not be, or healthy");
    if (truth.empty()) truth.push_back("nothing: a report that finds something is wrong");
    if (repair.empty()) repair.push_back("none");
    const size_t columns = columnsOfStdout();
    std::string out = scenario.name + "\n";
    addLines("what", {scenario.description}, columns, out);
    addLines("job",
             {fmt::format("{}, {} on {}", scenario.kind, text::countedText(scenario.worldSize, "rank"),
                          text::countedText(scenario.nodes, "virtual node"))},
             columns, out);
    addLines("fault", faults, columns, out);
    addLines("expected", truth, columns, out);
    addLines("allowed", allowed, columns, out);
    addLines("repaired", repair, columns, out);
    addLines("file", {file.string()}, columns, out);
    console.result(out);
    console.next(
        fmt::format("rankscope reference run {} -o {}", text::shellWord(name), text::shellWord(scenario.name)));
    return kExitOk;
}

}  // namespace

void addReferenceVerb(CLI::App& app, Invocation& invocation) {
    auto* verb = app.add_subcommand("reference", "The reference harness: jobs with known faults on virtual GPUs");
    verb->group(kTryGroup);
    verb->require_subcommand(1);

    auto options = std::make_shared<ReferenceRunOptions>();
    auto* run = verb->add_subcommand("run", "Run and record a scenario: a built-in one's name, or a scenario file");
    const auto names = [] { return scenarioNames(findInstallLayout()); };
    invocation.knownWords[run->add_option("SCENARIO", options->scenario, "Name or file")->required()] = names;
    run->add_option("-o,--output", options->name, "Run directory; the scenario's name when left out")
        ->type_name("NAME");
    run->add_flag("--fixed", options->fixed, "With the scenario's own repair applied");
    run->add_option("--tuner", options->tuner,
                    "NCCL algorithm and protocol by collective, size and communicator (docs/tuner-csv.md)")
        ->type_name("FILE");
    run->add_option("--links", options->links,
                    "What is known of the scenario's links: told (handed over as by `rankscope run --links`), machine "
                    "(what the virtual machine says of itself), unknown (neither)")
        ->check(CLI::IsMember({"told", "machine", "unknown"}))
        ->capture_default_str();
    auto* light = addLightOption(*run, options->light, "As rankscope run --light, or --light=kernels, records");
    addRingOption(*run, light, options->ring);
    addShareOption(*run, options->share);
    run->add_flag("--force", options->force, "Replace an earlier run of that name");
    run->add_flag("--no-collect", options->noCollect, "Leave the capture files as they are");
    setAction(*run, invocation, [options, &invocation] { return runScenario(*options, invocation.console); });

#ifdef RANKSCOPE_HAVE_SCORE
    addReferenceScoreVerb(*verb, invocation);
#endif

    auto shown = std::make_shared<std::string>();
    auto* one = verb->add_subcommand("show", "A scenario: its job, its fault, what must be found, what repairs it");
    invocation.knownWords[one->add_option("SCENARIO", *shown, "Name or file")->required()] = names;
    setAction(*one, invocation, [shown, &invocation] { return show(*shown, invocation.console); });

    auto listed = std::make_shared<ReferenceListOptions>();
    auto* all = verb->add_subcommand("list", "Name the built-in scenarios");
    all->add_option("--suite", listed->suite, "core, or frameworks: jobs of training frameworks")
        ->check(CLI::IsMember({"core", "frameworks"}))
        ->capture_default_str();
    addFormatOption(*all, listed->format, {"text", "json"}, "text or json");
    setAction(*all, invocation, [listed, &invocation] { return list(*listed, invocation.console); });
}

}  // namespace rankscope::cli

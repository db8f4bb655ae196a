// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/job/summary_input.h"
#include "analyzer/cli/verbs/compare_config.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/compare/baseline_level.h"
#include "analyzer/compare/comparability.h"
#include "analyzer/compare/compare.h"
#include "analyzer/compare/renderers.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/output_file.h"
#include "analyzer/text/plain_text.h"

namespace rankscope::cli {

namespace fs = std::filesystem;

namespace {

struct Format {
    std::string_view name;
    std::string (*render)(const compare::Comparison&);
};

// Text is not among them: it has colours where it goes to a terminal.
constexpr std::array<Format, 8> kOthers{{{"json", compare::renderComparisonJson},
                                         {"md", compare::renderComparisonMarkdown},
                                         {"junit", compare::renderComparisonJunit},
                                         {"sarif", compare::renderComparisonSarif},
                                         {"github", compare::renderComparisonAnnotations},
                                         {"benchmark", compare::renderComparisonBenchmark},
                                         {"openmetrics", compare::renderComparisonOpenMetrics},
                                         {"html", compare::renderComparisonHtml}}};

const std::vector<std::string>& comparisonFormats() {
    static const std::vector<std::string> kNames = [] {
        std::vector<std::string> names{"text"};
        for (const Format& format : kOthers) names.emplace_back(format.name);
        return names;
    }();
    return kNames;
}

std::string renderComparison(const compare::Comparison& comparison, const std::string& format, bool colour) {
    for (const Format& other : kOthers)
        if (other.name == format) return other.render(comparison);
    return compare::renderComparisonText(comparison, colour);
}

struct CompareVerbOptions {
    std::vector<std::string> names, base, now;
    std::optional<std::string> baseline;
    std::string config;
    std::vector<std::string> failOn, allow, across, thresholds, resolutions;
    std::string format = "text";
    std::string output;
    std::vector<std::string> write;
    unsigned workers = 0;
};

/// Tells which runs stand on which side.
struct Sides {
    std::vector<std::string> base, now;
    std::string baseline;  // the folder the base is taken from; empty: named runs
};

Sides sidesOf(const CompareVerbOptions& options, const CompareConfig& config) {
    if (options.baseline && options.baseline->empty())
        throw VerbError(kExitUsage, "--baseline: the name is empty", "is a variable not set?");
    Sides sides{options.base, options.now, options.baseline.value_or("")};
    std::vector<std::string> names = options.names;
    const bool fromConfig = sides.baseline.empty() && sides.base.empty() && config.baseline && names.size() < 2;
    if (fromConfig) sides.baseline = *config.baseline;
    if (!sides.baseline.empty() && !sides.base.empty())
        throw VerbError(kExitUsage, "--base and --baseline name the same side");
    if (sides.base.empty() && sides.baseline.empty()) {
        if (names.size() < 2 && !(names.size() == 1 && !sides.now.empty()))
            throw VerbError(
                kExitUsage, "two sides are needed",
                "rankscope compare BASE NEW, compare --base A B C --new D E F, or compare --baseline DIR NEW");
        sides.base.push_back(names.front());
        names.erase(names.begin());
        if (names.size() > 1)
            throw VerbError(kExitUsage, "more than two runs, and nothing says which side they are on",
                            "rankscope compare --base A B C --new D E F");
    }
    sides.now.insert(sides.now.end(), names.begin(), names.end());
    if (sides.now.empty())
        throw VerbError(kExitUsage, "which run is new?", "rankscope compare --base A B C --new D E F");
    return sides;
}

/// "step=3%", or "3%".
double stepShare(const std::string& text, const char* option) {
    const std::string value = text.starts_with("step=") ? text.substr(5) : text;
    const auto share = parseShare(value);
    if (!share || *share > 1)
        throw VerbError(kExitUsage, fmt::format("{} {}: no share of the step from 0% to 100%", option, text),
                        fmt::format("{} step=3%", option));
    return *share;
}

compare::CompareOptions settingsOf(const CompareVerbOptions& options, const CompareConfig& config) {
    compare::CompareOptions settings;
    settings.step.threshold = options.thresholds.empty() ? config.stepThreshold.value_or(settings.step.threshold)
                                                         : stepShare(options.thresholds.back(), "--threshold");
    settings.step.resolution = options.resolutions.empty() ? config.resolution.value_or(settings.step.resolution)
                                                           : stepShare(options.resolutions.back(), "--resolution");
    settings.gate.failOn = options.failOn.empty() ? config.failOn.value_or(settings.gate.failOn) : options.failOn;
    settings.gate.allow = config.allow.value_or(settings.gate.allow);
    settings.gate.allow.insert(settings.gate.allow.end(), options.allow.begin(), options.allow.end());
    const std::vector<std::string> across =
        options.across.empty() ? config.across.value_or(std::vector<std::string>{}) : options.across;
    settings.across = {across.begin(), across.end()};
    return settings;
}

/// FORMAT=FILE
std::pair<std::string, std::string> splitWrite(const std::string& text) {
    const size_t equal = text.find('=');
    if (equal == std::string::npos || equal + 1 == text.size())
        throw VerbError(kExitUsage, fmt::format("--write {}: no FORMAT=FILE", text), "--write json=compare.json");
    const std::string format = text.substr(0, equal);
    if (!text::contains(comparisonFormats(), format))
        throw VerbError(kExitUsage, fmt::format("--write {}: no format is called {}", text, format));
    return {format, text.substr(equal + 1)};
}

std::vector<std::string> outputsOf(const CompareVerbOptions& options,
                                   const std::vector<std::pair<std::string, std::string>>& files, const Sides& sides) {
    std::vector<std::string> outputs, inputs{options.config.empty() ? kProjectConfig : options.config, sides.baseline};
    for (const auto& [format, file] : files) outputs.push_back(file);
    if (!options.output.empty()) outputs.push_back(options.output);
    inputs.insert(inputs.end(), sides.base.begin(), sides.base.end());
    inputs.insert(inputs.end(), sides.now.begin(), sides.now.end());
    for (const std::string& output : outputs) checkOutput(output, inputs);
    return outputs;
}

/// Returns the runs of the base; none where the folder of the baseline is not there yet. One that cannot be read is no
/// missing one: the gate would pass for ever.
std::vector<std::string> baseOf(const Sides& sides) {
    if (sides.baseline.empty()) return sides.base;
    std::error_code error;
    const bool isMissing =
        fs::status(sides.baseline, error).type() == fs::file_type::not_found && error != std::errc::not_a_directory;
    return isMissing ? std::vector<std::string>{} : std::vector<std::string>{sides.baseline};
}

/// Of a baseline that was filled over months, the runs to compare with.
std::vector<compare::RunSummary> chosenFrom(std::vector<compare::RunSummary> baseline,
                                            const std::vector<compare::RunSummary>& now,
                                            compare::CompareOptions& settings) {
    if (baseline.empty()) return baseline;
    compare::BaseChoice choice = compare::chooseBase(std::move(baseline), now, settings.across);
    settings.history = std::move(choice.history);
    settings.step.earlier = choice.noise;
    return std::move(choice.runs);
}

int exitCode(const compare::Comparison& comparison, const Console& console) {
    for (const compare::Incomparable& row : comparison.incomparable)
        if (row.refused)
            console.error(text::oneLine(fmt::format("not comparable: {} is {} and {}", row.what, row.base, row.now)));
    if (comparison.gate.failed) return kExitGateFailed;
    return comparison.step.verdict == compare::StepVerdict::incomparable ? kExitInput : kExitOk;
}

int compare(const CompareVerbOptions& options, const Console& console) {
    const CompareConfig config = projectConfig(options.config);
    compare::CompareOptions settings = settingsOf(options, config);
    const Sides sides = sidesOf(options, config);
    std::vector<std::pair<std::string, std::string>> files;
    for (const std::string& text : options.write) files.push_back(splitWrite(text));
    requireDifferentFiles(outputsOf(options, files, sides));

    const auto now = readSummaries(sides.now, options.workers, console);
    if (now.empty())
        throw VerbError(kExitInput, fmt::format("{} holds no run: the new side is empty", sides.now.front()),
                        "rankscope compare --baseline DIR --new RUN");
    std::vector<compare::RunSummary> base = readSummaries(baseOf(sides), options.workers, console);
    if (!sides.baseline.empty()) base = chosenFrom(std::move(base), now, settings);
    const compare::Comparison comparison = compare::compareRuns(std::move(base), now, settings);
    console.stage(fmt::format("compared {} with {}", text::countedText(comparison.base.runs.size(), "run"),
                              text::countedText(comparison.now.runs.size(), "run")));
    for (const auto& [format, file] : files) text::writeOutputFile(renderComparison(comparison, format, false), file);
    const bool toFile = !options.output.empty();
    const std::string text = renderComparison(comparison, options.format, !toFile && console.colorOnStdout());
    giveResult(text, options.output, console);
    if (comparison.base.runs.empty())
        console.next(fmt::format("rankscope baseline save {} --dir {}", text::shellWord(sides.now.front()),
                                 sides.baseline.empty() ? "DIR" : text::shellWord(sides.baseline)));
    else if (!comparison.causes.empty() && !comparison.causes.front().diagnosis.empty())
        console.next("rankscope explain " + comparison.causes.front().diagnosis);
    else if (comparison.now.runs.front().fromBaseline)
        console.next(fmt::format("rankscope baseline show {}", text::shellWord(comparison.now.runs.front().file)));
    else
        console.next("rankscope analyze " + text::shellWord(sides.now.front()));
    return exitCode(comparison, console);
}

}  // namespace

void addCompareVerb(CLI::App& app, Invocation& invocation) {
    auto options = std::make_shared<CompareVerbOptions>();
    auto* verb = app.add_subcommand("compare", "Whether the step got slower, by how much, how sure that is, and why");
    verb->footer(
        "  rankscope compare BASE NEW\n  rankscope compare --base A B C --new D E F\n  rankscope compare --baseline "
        "DIR --new D E F\n"
        "Exit status: 1 when the gate fails, 3 when the runs must not be compared. Defaults are read from the table "
        "[compare] of ./rankscope.toml.");
    const auto check = [](auto function) {
        return CLI::Validator([function](std::string& word) { return function(word); }, "");
    };
    verb->add_option("RUNS", options->names, "Base and new; runs, .db files, summaries (.json) or baseline folders");
    verb->add_option("--base", options->base, "Runs of the base side")->type_name("RUN");
    verb->add_option("--new", options->now, "Runs of the new side")->type_name("RUN");
    verb->add_option("--baseline", options->baseline,
                     "Folder of saved runs as the base side; when there is none yet, that is a notice")
        ->type_name("DIR");
    verb->add_option("--fail-on", options->failOn,
                     "regression, new-finding, a diagnosis (RS203, RS2*) or never; may be repeated; default regression")
        ->type_name("WHAT")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(check(compare::checkFailOn));
    verb->add_option("--allow", options->allow, "Diagnoses that fail nothing (RS203, RS2*); may be repeated")
        ->type_name("ID")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(check(compare::checkAllow));
    verb->add_option("--threshold", options->thresholds, "A smaller change of the step is none; default step=1%")
        ->type_name("step=SHARE")
        ->allow_extra_args(false);
    verb->add_option("--resolution", options->resolutions,
                     "Say `no change` only where a change of that size would have been seen; default step=5%")
        ->type_name("step=SHARE")
        ->allow_extra_args(false);
    verb->add_option("--across", options->across, "Compare although this differs; may be repeated")
        ->type_name("WHAT")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::IsMember(compare::acrossNames()));
    verb->add_option("--config", options->config, "Settings; ./rankscope.toml when left out")
        ->type_name("FILE")
        ->check(CLI::ExistingFile);
    addFormatOption(*verb, options->format, comparisonFormats(), "Format of the result");
    addOutputOption(*verb, options->output, "File for the result");
    verb->add_option("--write", options->write, "Also write the result in that format; may be repeated")
        ->type_name("FORMAT=FILE")
        ->allow_extra_args(false);
    addWorkersOption(*verb, options->workers);
    setAction(*verb, invocation, [options, &invocation] {
        try {
            return compare(*options, invocation.console);
        } catch (const compare::CompareError& error) {
            throw VerbError(kExitInput, text::oneLine(error.what()), error.hint());
        }
    });
}

}  // namespace rankscope::cli

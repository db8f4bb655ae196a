// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/console/file_places.h"
#include "analyzer/cli/console/options.h"
#include "analyzer/cli/job/summary_input.h"
#include "analyzer/cli/verbs/compare_config.h"
#include "analyzer/cli/verbs/verb.h"
#include "analyzer/compare/baseline_level.h"
#include "analyzer/compare/comparability.h"
#include "analyzer/compare/compare.h"
#include "analyzer/compare/per_sample.h"
#include "analyzer/compare/renderers.h"
#include "analyzer/compare/summary_file.h"
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
    std::vector<std::string> write, drop;
    std::string label, per;
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

/// "sample=7", "token=512:3584": what a reader calls one, and how many of them a new step has for each of a base step.
std::pair<std::string, double> samplesOf(const std::string& text) {
    const size_t equal = text.find('='), colon = text.find(':');
    const std::string name = text.substr(0, equal);
    const bool isName = !name.empty() && std::ranges::all_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
    const auto number = [](const std::string& digits) {
        double value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value) ? value : 0;
    };
    double factor = 0;
    if (equal != std::string::npos && colon == std::string::npos) factor = number(text.substr(equal + 1));
    if (equal != std::string::npos && colon != std::string::npos && colon > equal) {
        const double base = number(text.substr(equal + 1, colon - equal - 1)), now = number(text.substr(colon + 1));
        factor = base > 0 ? now / base : 0;
    }
    if (!isName || !(factor > 0) || !std::isfinite(factor))
        throw VerbError(kExitUsage, fmt::format("--per {}: no NAME=NUMBER above 0", text),
                        "--per sample=7: a new step has 7 times the samples; or --per sample=512:3584, of both sides");
    return {name, factor};
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
    if (!options.per.empty()) std::tie(settings.sample, settings.samples) = samplesOf(options.per);
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

/// The runs of a baseline, without what chosenFrom() does not need; none where the folder is not there yet. One that
/// cannot be read is no missing one: the gate would pass for ever.
std::vector<compare::RunSummary> headsOf(const std::string& baseline, unsigned workers, const Console& console) {
    std::error_code error;
    if (fs::status(baseline, error).type() == fs::file_type::not_found && error != std::errc::not_a_directory)
        return {};
    if (!isBaselineFolder(baseline)) return readSummaries({baseline}, workers, console);
    try {
        return compare::readBaselineHeads(baseline);
    } catch (const compare::SummaryError& damage) {
        throw VerbError(kExitInput, text::oneLine(damage.what()), damage.hint());
    }
}

/// Of a baseline that was filled over months, the runs to compare with.
std::vector<compare::RunSummary> chosenFrom(std::vector<compare::RunSummary> baseline, const std::string& folder,
                                            const std::vector<compare::RunSummary>& now,
                                            compare::CompareOptions& settings) {
    if (baseline.empty()) return baseline;
    std::vector<compare::RunSummary> alike = now;  // of as many samples as the baseline's
    if (settings.samples != 1)
        for (compare::RunSummary& run : alike) run = compare::perSamples(std::move(run), settings.samples);
    compare::BaseChoice choice =
        compare::chooseBase(std::move(baseline), alike, settings.across, settings.step.threshold);
    settings.history = std::move(choice.history);
    settings.step.earlier = choice.noise;
    settings.step.confidence = choice.confidence;
    return isBaselineFolder(folder) ? compare::readWhole(choice.runs) : std::move(choice.runs);
}

/// Leaves runs out that the user names. Throws VerbError for a name that no run has.
void dropRuns(const std::vector<std::string>& names, std::vector<compare::RunSummary>& base,
              std::vector<compare::RunSummary>& now) {
    for (const std::string& name : names) {
        const auto isDropped = [&](const compare::RunSummary& run) { return run.name == name; };
        // The runs of every change may have the same names: those of the baseline stay.
        if (std::erase_if(now, isDropped) == 0 && std::erase_if(base, isDropped) == 0)
            throw VerbError(kExitUsage, fmt::format("--drop {}: no run of either side is called so", name));
    }
}

int exitCode(const compare::Comparison& comparison, const Console& console) {
    for (const compare::Incomparable& row : comparison.incomparable)
        if (row.refused)
            console.error(text::oneLine(fmt::format("not comparable: {} is {} and {}", row.what, row.base, row.now)));
    return comparison.gate.exitStatus;
}

int compare(const CompareVerbOptions& options, const Console& console) {
    const CompareConfig config = projectConfig(options.config);
    compare::CompareOptions settings = settingsOf(options, config);
    const Sides sides = sidesOf(options, config);
    std::vector<std::pair<std::string, std::string>> files;
    for (const std::string& text : options.write) files.push_back(splitWrite(text));
    requireDifferentFiles(outputsOf(options, files, sides));

    auto now = readSummaries(sides.now, options.workers, console);
    std::vector<compare::RunSummary> base = sides.baseline.empty() ? readSummaries(sides.base, options.workers, console)
                                                                   : headsOf(sides.baseline, options.workers, console);
    dropRuns(options.drop, base, now);
    if (!options.label.empty())
        for (compare::RunSummary& run : now) run.label = options.label;
    if (now.empty())
        throw VerbError(kExitInput, fmt::format("{} holds no run: the new side is empty", sides.now.front()),
                        "rankscope compare --baseline DIR --new RUN");
    if (!sides.baseline.empty()) base = chosenFrom(std::move(base), sides.baseline, now, settings);
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
    verb->group(kChangeGroup);
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
    verb->add_option("--label", options->label, "What the new runs are of, a commit say; default: their own label")
        ->type_name("TEXT");
    verb->add_option("--drop", options->drop, "Leave out the run of that name, a bad one; may be repeated")
        ->type_name("RUN")
        ->allow_extra_args(false);
    verb->add_option("--per", options->per,
                     "Compare the time per sample, where a new step has N times those of a base step: sample=N, "
                     "token=BASE:NEW")
        ->type_name("WHAT=N");
    verb->add_option("--fail-on", options->failOn,
                     "regression, new-finding, undecided, no-baseline, incomparable, a diagnosis (RS203, RS2*, "
                     "finding:RS203) or never; may be repeated; default regression")
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

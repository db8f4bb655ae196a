// SPDX-License-Identifier: Apache-2.0
#include "reference/score/scenario_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/score/advice.h"
#include "reference/score/command.h"
#include "reference/score/run_report.h"
#include "reference/score/score.h"

namespace rankscope::score {
namespace {

namespace fs = std::filesystem;

/// The runs read a copy of the scenario: what they say of it is meant for the user's file.
std::string aboutOriginal(std::string text, const std::string& copy, const std::string& origin) {
    for (size_t at = text.find(copy); at != std::string::npos; at = text.find(copy, at + origin.size()))
        text.replace(at, copy.size(), origin);
    return text;
}

std::string failureOf(const CommandEnd& end, const char* what, int timeoutS) {
    if (end.timedOut) return fmt::format("{} was ended after {} s", what, timeoutS);
    return end.messages.empty() ? fmt::format("{} failed with status {}", what, end.status)
                                : fmt::format("{} failed: {}", what, end.messages);
}

/// Records the run into the folder `run`. Throws ScenarioFileError.
void record(const Scenario& scenario, const fs::path& folder, const fs::path& run, bool fixed,
            const RunSettings& settings, const std::atomic<bool>& stop) {
    std::vector<std::string> words;
    if (!scenario.environment.empty()) words.emplace_back("/usr/bin/env");
    for (const auto& [name, value] : scenario.environment)
        if (!value) words.insert(words.end(), {"-u", name});
    for (const auto& [name, value] : scenario.environment)
        if (value) words.push_back(name + "=" + *value);
    words.insert(words.end(), {settings.tool, "-q", "reference", "run", folder / "scenario.json", "--force", "--links",
                               settings.links, "-o", run});
    if (fixed) words.push_back("--fixed");
    if (!settings.light.empty()) words.insert(words.end(), {"--light=" + settings.light, "--ring", settings.ring});
    const CommandEnd ran = runCommand(words, folder / "run.log", settings.timeoutS, stop);
    const bool mayFail = scenario.plantsFailure && !fixed && fs::exists(run / "trace.db");
    if (ran.status != 0 && (ran.timedOut || !mayFail))
        throw ScenarioFileError(aboutOriginal(failureOf(ran, fixed ? "the repaired run" : "the run", settings.timeoutS),
                                              folder / "scenario.json", scenario.origin));
}

/// Runs and analyzes one twin. Throws ScenarioFileError.
RunReport runTwin(const Scenario& scenario, const fs::path& folder, bool fixed, const RunSettings& settings,
                  const std::atomic<bool>& stop) {
    const fs::path run = folder / (fixed ? "fixed" : "faulty");
    const fs::path report = folder / (fixed ? "fixed.json" : "faulty.json");
    if (!settings.again || !fs::exists(run / "trace.db")) record(scenario, folder, run, fixed, settings, stop);
    std::vector<std::string> words = {settings.tool, "-q", "analyze", run, "--format", "json", "-o", report};
    if (settings.links == kUnknownLinks) words.insert(words.end(), {"--links", kUnknownLinks});
    const CommandEnd analyzed = runCommand(words, folder / "analyze.log", settings.timeoutS, stop);
    constexpr int kRunFailed = 5;  // of `analyze`: the report says what ended the job
    if (analyzed.status != 0 && analyzed.status != kRunFailed)
        throw ScenarioFileError(failureOf(analyzed, "the analysis", settings.timeoutS));
    return readReport(report);
}

/// Of a twin: the trace is large, and nobody reads it any more.
void removeRun(const fs::path& folder, bool fixed, const RunSettings& settings) {
    std::error_code ignored;
    if (!settings.keep) fs::remove_all(folder / (fixed ? "fixed" : "faulty"), ignored);
}

/// The scenario as it is, in the ideal world.
RunReport runIdeal(const Scenario& scenario, const fs::path& folder, const RunSettings& settings,
                   const std::atomic<bool>& stop) {
    Scenario ideal = scenario;
    nlohmann::json document = nlohmann::json::parse(scenario.json);
    document["world"] = "ideal";
    ideal.json = document.dump(1);
    fs::create_directories(folder / "ideal");
    std::ofstream(folder / "ideal" / "scenario.json") << ideal.json;
    const RunReport report = runTwin(ideal, folder / "ideal", false, settings, stop);
    removeRun(folder / "ideal", false, settings);
    return report;
}

std::string environmentText(const Scenario& scenario) {
    std::string text;
    for (const auto& [name, value] : scenario.environment)
        text += value ? name + "=" + *value + "\n" : "unset " + name + "\n";
    return text;
}

/// True when the file had another text; one that is not there had none.
bool replaceText(const fs::path& file, const std::string& text) {
    std::ifstream kept(file);
    if (std::string{std::istreambuf_iterator(kept), {}} == text) return false;
    std::ofstream(file) << text;
    return true;
}

/// Does what the advice on the faulty run says. Throws ScenarioFileError.
FollowedAdvice followAdvice(const Scenario& scenario, const fs::path& folder, const RunReport& faulty,
                            const RunSettings& settings, const std::atomic<bool>& stop) {
    std::vector<std::string> words = {settings.tool, "-q",   "recommend", folder / "faulty",
                                      "--format",    "json", "-o",        folder / "advice.json"};
    if (settings.links == kUnknownLinks) words.insert(words.end(), {"--links", kUnknownLinks});
    const CommandEnd asked = runCommand(words, folder / "recommend.log", settings.timeoutS, stop);
    if (asked.status != 0) throw ScenarioFileError(failureOf(asked, "the advice", settings.timeoutS));
    const Advice advice = readAdvice(folder / "advice.json", scenario);
    FollowedAdvice followed;
    followed.areas = advice.followed;
    followed.notFollowed = advice.notFollowed;
    followed.findings = advice.findings;
    followed.isRecommended = advice.isRecommended;
    followed.promise = advice.promise;
    if (advice.followed.empty()) return followed;
    const fs::path place = folder / "followed";
    fs::create_directories(place);
    // A run that was kept may have followed other advice.
    for (const auto& [file, text] :
         {std::pair("scenario.json", advice.scenario.json), std::pair("environment", environmentText(advice.scenario))})
        if (replaceText(place / file, text)) fs::remove_all(place / "faulty");
    const RunReport after = runTwin(advice.scenario, place, false, settings, stop);
    removeRun(place, false, settings);
    followed.gainNs = savingBetween(scenario, faulty, advice.scenario.tokens, after);
    return followed;
}

nlohmann::json worldOf(const std::string& scenario) {
    const nlohmann::json document = nlohmann::json::parse(scenario, nullptr, false);
    return document.is_object() && document.contains("world") ? document["world"] : nlohmann::json("ideal");
}

/// Throws ScenarioFileError when the runs that lie in the folder were made in another world than the scenario's.
void requireSameWorld(const fs::path& folder, const Scenario& scenario) {
    std::ifstream file(folder / "scenario.json");
    if (!file) return;
    const std::string kept{std::istreambuf_iterator(file), {}};
    if (worldOf(kept) != worldOf(scenario.json))
        throw ScenarioFileError(
            fmt::format("{} was recorded in the world {}, this is to be judged in {}: give --again the same --worlds",
                        folder.string(), worldOf(kept).dump(), worldOf(scenario.json).dump()));
}

ScenarioScore judgeIn(const fs::path& folder, const Scenario& scenario, const RunSettings& settings,
                      const std::atomic<bool>& stop) {
    fs::create_directories(folder);
    if (settings.again) requireSameWorld(folder, scenario);
    std::ofstream(folder / "scenario.json") << scenario.json;
    const RunReport faulty = runTwin(scenario, folder, false, settings, stop);
    ScenarioScore score;
    if (settings.runFixed && scenario.hasFixed) {
        const RunReport fixed = runTwin(scenario, folder, true, settings, stop);
        removeRun(folder, true, settings);
        score = judge(scenario, faulty, &fixed);
    } else {
        score = judge(scenario, faulty, nullptr);
    }
    if (scenario.drawnWorld && std::ranges::any_of(score.falseAlarms, mayBeOfTheWorld)) {
        const RunReport ideal = runIdeal(scenario, folder, settings, stop);
        judgeWorld(faulty.findings, scenario.rareSteps ? ideal.meanStepNs : ideal.medianStepNs, score);
    }
    if (settings.followAdvice) {
        score.advice = followAdvice(scenario, folder, faulty, settings, stop);
        judgeFollowed(scenario, *score.advice, score);
    }
    removeRun(folder, false, settings);
    return score;
}

}  // namespace

ScenarioScore runAndJudge(const Scenario& scenario, const RunSettings& settings, const std::atomic<bool>& stop) {
    if (!scenario.error.empty()) return failed(scenario, scenario.error);
    const auto begin = std::chrono::steady_clock::now();
    const fs::path folder = settings.folder / scenario.name;
    ScenarioScore score;
    try {
        score = judgeIn(folder, scenario, settings, stop);
    } catch (const std::exception& error) {
        score = failed(scenario, error.what());
    }
    score.wallS = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::error_code ignored;
    if (!settings.keep) fs::remove_all(folder, ignored);
    return score;
}

}  // namespace rankscope::score

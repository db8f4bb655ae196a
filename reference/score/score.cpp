// SPDX-License-Identifier: Apache-2.0
#include "reference/score/score.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "reference/score/scenario_runner.h"
#include "reference/score/suites.h"
#include "reference/score/workplace.h"

namespace rankscope::score {
namespace {

void runAll(const std::vector<Scenario>& scenarios, const RunSettings& settings, unsigned jobs,
            std::vector<ScenarioScore>& scores, const std::function<void(const ScenarioScore&, size_t, size_t)>& done) {
    std::atomic<size_t> next{0};
    std::mutex mutex;  // guards `finished` and `done`
    size_t finished = 0;
    const auto work = [&] {
        for (size_t i = next++; i < scenarios.size() && !stopRequested; i = next++) {
            scores[i] = runAndJudge(scenarios[i], settings, stopRequested);
            const std::lock_guard lock(mutex);
            if (!stopRequested) done(scores[i], ++finished, scenarios.size());
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::min<size_t>(jobs, scenarios.size()); ++i) threads.emplace_back(work);
}

double readShare(const std::string& text, const std::string& value) {
    char* end = nullptr;
    const double share = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(share >= 0 && share <= 1))
        throw ScoreError(fmt::format("'{}': write precision=0.98,recall=0.95", text));
    return share;
}

}  // namespace

bool isWanted(const std::string& name, const std::vector<std::string>& only) {
    const auto fits = [&](const std::string& pattern) {
        return name.find(pattern) != std::string::npos || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    };
    return only.empty() || std::any_of(only.begin(), only.end(), fits);
}

std::vector<Scenario> scenariosOf(const ScoreOptions& options) {
    const bool frameworks = options.suite == "frameworks";
    const bool builtIns = !options.scenarios.empty() || options.suite != "hangs";
    std::vector<Scenario> scenarios;
    if (builtIns)
        scenarios = readFolder(!options.scenarios.empty() ? options.scenarios
                               : frameworks               ? options.frameworkJobs
                                                          : options.builtIns);
    if (options.scenarios.empty() && options.suite == "full")
        for (Scenario& scenario : readGenerated(options.fullSuite, "full", options.draw))
            scenarios.push_back(std::move(scenario));
    if (!builtIns) scenarios = readGenerated(options.hangsSuite, "hangs", options.draw);
    std::erase_if(scenarios, [&](const Scenario& scenario) { return !isWanted(scenario.name, options.only); });
    for (Scenario& scenario : scenarios) setWorld(scenario, options.worlds);
    if (scenarios.empty()) throw ScoreError("there is no scenario to run");
    return scenarios;
}

Scoreboard runScore(const ScoreOptions& options,
                    const std::function<void(const ScenarioScore&, size_t, size_t)>& done) {
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<Scenario> scenarios = scenariosOf(options);
    const StopOnSignals signals;
    const Workplace workplace(options.keep);
    const unsigned jobs = options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
    Scoreboard board;
    board.suite = options.scenarios.empty() ? options.suite : options.scenarios.string();
    board.links = options.links;
    board.worlds = options.worlds;
    board.scenarios.resize(scenarios.size());
    runAll(scenarios,
           {options.tool, workplace.folder(), options.timeoutS, options.runFixed, !options.keep.empty(), options.again,
            options.light, options.ring, options.links, options.followAdvice},
           jobs, board.scenarios, done);
    if (stopRequested) throw ScoreError("interrupted");
    board.tally = addUp(board.scenarios);
    board.wallS = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return board;
}

Requirement parseRequirement(const std::string& text) {
    Requirement requirement;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find(',', begin), text.size());
        const std::string part = text.substr(begin, end - begin);
        const size_t sign = part.find('=');
        const std::string name = part.substr(0, sign);
        if (sign == std::string::npos || (name != "precision" && name != "recall" && name != "kept"))
            throw ScoreError(fmt::format("'{}': write precision=0.98,recall=0.95", text));
        (name == "precision" ? requirement.precision
         : name == "recall"  ? requirement.recall
                             : requirement.kept) = readShare(text, part.substr(sign + 1));
        begin = end + 1;
    }
    return requirement;
}

bool meets(const Scoreboard& board, const Requirement& requirement) {
    const Counts& total = board.tally.total;
    return (!requirement.precision || total.precision() >= *requirement.precision) &&
           (!requirement.recall || total.recall() >= *requirement.recall) &&
           (!requirement.kept || board.tally.promisesKept >= *requirement.kept * board.tally.promises);
}

}  // namespace rankscope::score

// SPDX-License-Identifier: Apache-2.0
// Entry of the score: runs scenarios with known faults through `rankscope reference run` and `rankscope analyze`, and
// compares the findings with what was planted. It knows scenario files and JSON reports (rankscope.report/1), nothing
// else of the profiler.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/score/tally.h"
#include "reference/score/verdict.h"

namespace rankscope::score {

/// Nobody tells what the links can do, and what a recorded run knows of them does not count.
inline constexpr const char* kUnknownLinks = "unknown";

struct ScoreOptions {
    std::filesystem::path tool;           ///< the `rankscope` binary
    std::filesystem::path builtIns;       ///< folder of the built-in scenarios
    std::filesystem::path frameworkJobs;  ///< folder of the built-in jobs of frameworks
    std::filesystem::path fullSuite;      ///< full_suite.json
    std::filesystem::path hangsSuite;     ///< hangs_suite.json
    std::string suite = "core";           ///< core, full, hangs or frameworks
    std::filesystem::path scenarios;      ///< run every *.json of this folder instead of a suite
    std::vector<std::string>
        only;  ///< names that are or contain one of these, or match one as a shell pattern; empty: all
    std::filesystem::path keep;  ///< keep runs and reports here; empty: in a temporary folder, removed at the end
    bool again = false;          ///< analyze the runs that `keep` holds from before; what is missing there is run
    int draw = 0;                ///< suites full and hangs: which draw of the generated scenarios (generator.h)
    unsigned jobs = 0;           ///< scenarios at a time; 0: one per core
    int timeoutS = 300;          ///< for each run and each analysis; what takes longer is ended and counts as failed
    bool runFixed = true;        ///< run the repaired twins too
    bool followAdvice = false;   ///< run what `rankscope recommend` advises, too, where a scenario says how (advice.h)
    int worlds = 1;              ///< which draw of the worlds that the scenarios run in (vgpu/engine/nccl_world.h); 0:
                                 ///< the ideal one. Runs that `again` finds must have been in the same
    std::string light;           ///< calls or kernels: record as `rankscope run --light=…` does; empty: in full
    std::string ring = "60s";    ///< `rankscope run --ring`, with `light`
    std::string links = "machine";  ///< told, machine or unknown: what the runs know of their links, as `rankscope
                                    ///< reference run --links` takes it
};

struct Scoreboard {
    std::string suite;  ///< its name, or the folder
    std::string links = "told";
    int worlds = 0;                        ///< of ScoreOptions
    std::vector<ScenarioScore> scenarios;  ///< in the order of the suite
    Tally tally;
    double wallS = 0;
};

/// What must be reached; empty: not demanded. All are shares between 0 and 1.
struct Requirement {
    std::optional<double> precision;
    std::optional<double> recall;
    std::optional<double> kept;  ///< of the gains that the advice promised
};

/// Says what is wrong with the input as a whole (no such folder, nothing to run). One bad scenario is a row of the
/// result instead.
struct ScoreError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The scenarios that would run, in order. Throws ScoreError.
std::vector<Scenario> scenariosOf(const ScoreOptions& options);

/// Whether `only` has a part of the name, or a shell pattern that it matches; empty: every name is wanted.
bool isWanted(const std::string& name, const std::vector<std::string>& only);

/// Runs them. `done` is called after each scenario, from one thread at a time. Throws ScoreError. SIGINT and SIGTERM
/// end the running jobs, remove the temporary folder and throw ScoreError.
Scoreboard runScore(const ScoreOptions& options,
                    const std::function<void(const ScenarioScore&, size_t done, size_t all)>& done);

/// "precision=0.98,recall=0.95,kept=0.9". Throws ScoreError.
Requirement parseRequirement(const std::string& text);
bool meets(const Scoreboard& board, const Requirement& requirement);

std::string renderText(const Scoreboard& board);
std::string renderMarkdown(const Scoreboard& board);
std::string renderJson(const Scoreboard& board);

/// The same scenarios with links told, from the machine and unknown, side by side. `format`: text, md or json.
std::string renderModes(const std::vector<Scoreboard>& boards, const std::string& format);

}  // namespace rankscope::score

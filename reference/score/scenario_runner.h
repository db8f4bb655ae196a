// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>

#include "reference/score/scenario_file.h"
#include "reference/score/verdict.h"

namespace rankscope::score {

/// Where and how scenarios are run.
struct RunSettings {
    std::filesystem::path tool;
    std::filesystem::path folder;  ///< each scenario gets a folder of its own in it
    int timeoutS = 300;
    bool runFixed = true;
    bool keep = false;           ///< leave the runs and reports in `folder`
    bool again = false;          ///< a run that lies in `folder` from before is analyzed, not run again
    std::string light;           ///< as `rankscope reference run --light=…`; empty: without
    std::string ring = "60s";    ///< for `rankscope reference run --ring`, with `light`
    std::string links = "told";  ///< for `rankscope reference run --links`
    bool followAdvice = false;   ///< ask `rankscope recommend`, and run the scenario once more as it says
};

/// `rankscope reference run` and `rankscope analyze --format json`, for the scenario and for its repaired twin, then
/// the verdict. Does not throw for what is wrong with the scenario: that is the verdict's `error`.
ScenarioScore runAndJudge(const Scenario& scenario, const RunSettings& settings, const std::atomic<bool>& stop);

}  // namespace rankscope::score

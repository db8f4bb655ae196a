// SPDX-License-Identifier: Apache-2.0
// What the score reads of a report (rankscope.report/1).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reference/score/scenario_file.h"

namespace rankscope::score {

struct Finding {
    Claim claim;
    std::optional<double> savingNs;  ///< per step
    double severity = 0;             ///< share of the step
};

struct RunReport {
    std::vector<Finding> findings;  ///< verdict "found" only: what is inconclusive claims nothing
    double medianStepNs = 0;        ///< steps after warm-up
    double meanStepNs = 0;
    std::optional<double> replayError;  ///< share of the measured step
};

/// Throws ScenarioFileError when the file is no such report, or when a row of its breakdown does not add up to the
/// step.
RunReport readReport(const std::filesystem::path& file);

}  // namespace rankscope::score

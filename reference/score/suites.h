// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "reference/score/scenario_file.h"

namespace rankscope::score {

/// Every *.json of a folder, in the order of their names. A file that is no scenario has `error` set. Throws ScoreError
/// when there is no such folder.
std::vector<Scenario> readFolder(const std::filesystem::path& folder);

/// The scenarios that full_suite.json describes (generator.h). Throws ScoreError.
std::vector<Scenario> readGenerated(const std::filesystem::path& table, const std::string& suite, int draw);

}  // namespace rankscope::score

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analyzer/cli/console/install_layout.h"

namespace rankscope::cli {

// Holds what the workload program says about a scenario file.
struct ReferenceScenario {
    std::string name;
    std::string description;
    std::string kind;
    int worldSize = 0;
    int nodes = 1;
    int ranksPerNode = 1;
    std::string links;  // RANKSCOPE_LINKS
    std::vector<std::string> faults;
};

// A scenario file as given, or the built-in one of that name. Throws VerbError when there is neither.
std::filesystem::path findScenario(const InstallLayout& layout, const std::string& nameOrFile);

std::vector<std::filesystem::path> builtInScenarios(const InstallLayout& layout);

// Throws VerbError (exit code 3) with the workload program's own words for a scenario that is wrong.
ReferenceScenario checkScenario(const InstallLayout& layout, const std::filesystem::path& file);

// The scenario's text with its `fixed` overrides merged.
std::string fixedScenario(const InstallLayout& layout, const std::filesystem::path& file);

}  // namespace rankscope::cli

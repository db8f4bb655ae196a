// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/cli/console/install_layout.h"

namespace rankscope::cli {

// The script of a framework that a scenario of the kind framework starts.
struct ReferenceScript {
    std::string script;
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<std::string> modules;
};

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
    std::optional<ReferenceScript> script;  // of a framework; empty: rankscope-workload runs the scenario
};

// A scenario file as given, or the built-in one of that name, be it a job of a framework. Throws VerbError when there
// is neither.
std::filesystem::path findScenario(const InstallLayout& layout, const std::string& nameOrFile);

// The scenarios in a folder of `layout`, by name.
std::vector<std::filesystem::path> scenariosIn(const std::filesystem::path& folder);

// The names of all built-in ones.
std::vector<std::string> scenarioNames(const InstallLayout& layout);

// Throws VerbError (exit code 3) with the workload program's own words for a scenario that is wrong.
ReferenceScenario checkScenario(const InstallLayout& layout, const std::filesystem::path& file);

// The scenario's text with its `fixed` overrides merged.
std::string fixedScenario(const InstallLayout& layout, const std::filesystem::path& file);

}  // namespace rankscope::cli

// SPDX-License-Identifier: Apache-2.0
#include "reference/score/suites.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "reference/score/generator.h"
#include "reference/score/score.h"

namespace rankscope::score {
namespace {

namespace fs = std::filesystem;

std::string readText(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(stream)), {});
    if (!stream) throw ScenarioFileError(fmt::format("{}: cannot be read", file.string()));
    return text;
}

Scenario readFile(const fs::path& file) {
    Scenario scenario;
    try {
        scenario = parseScenario(readText(file), file.string());
    } catch (const ScenarioFileError& error) {
        scenario.error = error.what();
    }
    scenario.name = file.stem().string();
    return scenario;
}

}  // namespace

std::vector<Scenario> readFolder(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (entry.path().extension() == ".json" && !entry.is_directory(error)) files.push_back(entry.path());
    if (error) throw ScoreError(fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
    std::sort(files.begin(), files.end());
    std::vector<Scenario> scenarios;
    for (const fs::path& file : files) scenarios.push_back(readFile(file));
    return scenarios;
}

std::vector<Scenario> readGenerated(const fs::path& table, const std::string& suite, int draw) {
    try {
        return generate(readText(table), table.string(), draw, suite);
    } catch (const ScenarioFileError& error) {
        throw ScoreError(error.what());
    }
}

}  // namespace rankscope::score

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/verbs/reference_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analyzer/cli/console/errors.h"
#include "analyzer/cli/job/child_program.h"
#include "analyzer/diagnose/diagnosis.h"
#include "analyzer/text/nearest_word.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

std::string askWorkload(const InstallLayout& layout, const char* question, const fs::path& file) {
    if (!fs::exists(layout.workload))
        throw VerbError(kExitInput,
                        fmt::format("the reference workloads are missing: {} does not exist", layout.workload.string()),
                        "build with the CUDA compiler present (./bootstrap.sh build)");
    Environment environment = currentEnvironment();
    // The program is linked to the CUDA runtime and NCCL: on a machine without them it finds the virtual ones.
    setVariable(environment, "LD_LIBRARY_PATH", layout.vgpu.string());
    const auto output = readProgramOutput({{layout.workload.string(), question, file.string()}, environment});
    if (output.end.failed())
        throw VerbError(kExitInput, output.standardError.empty()
                                        ? fmt::format("{} failed on {}", layout.workload.string(), file.string())
                                        : output.standardError);
    return output.standardOutput;
}

ReferenceScript readScript(const nlohmann::json& summary) {
    ReferenceScript script{.script = summary.at("script"),
                           .arguments = summary.at("arguments"),
                           .environment = {},
                           .modules = summary.at("modules")};
    for (const auto& [name, value] : summary.at("environment").items()) script.environment.emplace_back(name, value);
    return script;
}

}  // namespace

fs::path findScenario(const InstallLayout& layout, const std::string& nameOrFile) {
    std::error_code ignored;
    if (fs::is_regular_file(nameOrFile, ignored)) return nameOrFile;
    for (const fs::path& folder : {layout.scenarios, layout.frameworkJobs}) {
        const fs::path builtIn = folder / (nameOrFile + ".json");
        if (nameOrFile.find('/') == std::string::npos && fs::is_regular_file(builtIn, ignored)) return builtIn;
    }
    throw VerbError(kExitInput, fmt::format("there is no scenario {}", nameOrFile),
                    text::didYouMean(nameOrFile, scenarioNames(layout)) +
                        "`rankscope reference list` names the built-in ones; a scenario file works too");
}

std::vector<std::string> scenarioNames(const InstallLayout& layout) {
    std::vector<std::string> names;
    for (const fs::path& folder : {layout.scenarios, layout.frameworkJobs})
        for (const fs::path& file : scenariosIn(folder)) names.push_back(file.stem().string());
    return names;
}

std::vector<fs::path> scenariosIn(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

ReferenceScenario checkScenario(const InstallLayout& layout, const fs::path& file) {
    const auto summary = nlohmann::json::parse(askWorkload(layout, "--check", file));
    ReferenceScenario scenario{.name = summary.at("name"),
                               .description = summary.value("description", ""),
                               .kind = summary.at("kind"),
                               .worldSize = summary.at("world_size"),
                               .nodes = summary.at("nodes"),
                               .ranksPerNode = summary.at("ranks_per_node"),
                               .links = summary.at("links"),
                               .faults = summary.at("faults")};
    if (const auto script = summary.find("framework"); script != summary.end()) scenario.script = readScript(*script);
    for (const auto& claim : summary.value("claims", nlohmann::json::array()))
        if (const auto id = claim.at("id").get<std::string>(); diagnose::findDiagnosis(id) == nullptr)
            throw VerbError(kExitInput,
                            fmt::format("{}: '{}' is {}, which is no diagnosis", file.string(),
                                        claim.at("key").get<std::string>(), id),
                            "`rankscope explain` lists them");
    return scenario;
}

std::string fixedScenario(const InstallLayout& layout, const fs::path& file) {
    return askWorkload(layout, "--fixed", file);
}

}  // namespace rankscope::cli

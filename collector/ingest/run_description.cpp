// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/run_description.h"

#include <fstream>

#include <nlohmann/json.hpp>

namespace rankscope::collector {

RunFacts describeRun(const std::filesystem::path& runDirectory, std::vector<store::Loss>& losses) {
    RunFacts facts;
    facts.runName = std::filesystem::absolute(runDirectory).lexically_normal().filename().string();
    if (facts.runName.empty()) facts.runName = std::filesystem::absolute(runDirectory).lexically_normal().parent_path().filename().string();
    std::ifstream file(runDirectory / "run.json");
    if (!file) return facts;
    const nlohmann::json run = nlohmann::json::parse(file, nullptr, false);
    if (!run.is_object()) {
        losses.push_back({0, "bad_run_json", store::Severity::warning, {}, "collector", 1, "run.json", {}, "run.json is damaged: how the job was started is unknown"});
        return facts;
    }
    const auto virtualGpu = run.find("virtual");
    if (virtualGpu != run.end() && virtualGpu->is_boolean()) facts.virtualGpu = virtualGpu->get<bool>();
    const auto worldSize = run.find("world_size");
    if (worldSize != run.end() && worldSize->is_number_integer() && worldSize->get<int64_t>() > 0 && worldSize->get<int64_t>() < (1 << 24)) {
        facts.worldSize = worldSize->get<int32_t>();
    }
    const auto links = run.find("links");
    if (links != run.end() && links->is_string() && !links->get<std::string>().empty()) facts.meta["links"] = links->get<std::string>();
    const auto command = run.find("command");
    if (command != run.end()) facts.meta["command"] = command->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return facts;
}

}  // namespace rankscope::collector

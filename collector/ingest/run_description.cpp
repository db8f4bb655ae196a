// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/run_description.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collector/store/bounded_json.h"

namespace rankscope::collector {
namespace {

/// Variables as run.json lists them, {"NCCL_PROTO": "LL"}; their number is limited, as a run's meta rows are read
/// whole.
void addVariables(const nlohmann::json& variables, const std::string& prefix, RunFacts& facts) {
    constexpr size_t kMost = 64;
    size_t count = 0;
    for (const auto& [name, value] : variables.items())
        if (value.is_string() && ++count <= kMost) facts.meta[prefix + name] = value.get<std::string>();
}

}  // namespace

RunFacts describeRun(const std::filesystem::path& runDirectory, std::vector<store::Loss>& losses) {
    RunFacts facts;
    facts.runName = std::filesystem::absolute(runDirectory).lexically_normal().filename().string();
    if (facts.runName.empty())
        facts.runName = std::filesystem::absolute(runDirectory).lexically_normal().parent_path().filename().string();
    std::error_code unknown;
    if (!std::filesystem::exists(runDirectory / "run.json", unknown)) return facts;
    const nlohmann::json run = store::readJsonOrNothing(runDirectory / "run.json");
    if (!run.is_object()) {
        losses.push_back({0,
                          "bad_run_json",
                          store::Severity::warning,
                          {},
                          "collector",
                          1,
                          "run.json",
                          {},
                          "run.json is damaged: how the job was started is unknown"});
        return facts;
    }
    const auto virtualGpu = run.find("virtual");
    if (virtualGpu != run.end() && virtualGpu->is_boolean()) facts.virtualGpu = virtualGpu->get<bool>();
    const auto worldSize = run.find("world_size");
    if (worldSize != run.end() && worldSize->is_number_integer() && worldSize->get<int64_t>() > 0 &&
        worldSize->get<int64_t>() < (1 << 24)) {
        facts.worldSize = worldSize->get<int32_t>();
    }
    if (const auto status = run.find("exit_status"); status != run.end() && status->is_number_integer())
        facts.exitStatus = static_cast<int>(std::clamp<int64_t>(status->get<int64_t>(), 0, 255));
    if (const auto end = run.find("end_unix_ns"); end != run.end() && end->is_number_integer() && !facts.virtualGpu)
        facts.meta["end_unix_ns"] = std::to_string(end->get<int64_t>());
    if (const auto signal = run.find("stop_signal"); signal != run.end() && signal->is_number_integer())
        facts.stopSignal = static_cast<int>(std::clamp<int64_t>(signal->get<int64_t>(), 0, 255));
    const auto links = run.find("links");
    if (links != run.end() && links->is_string() && !links->get<std::string>().empty())
        facts.meta["links"] = links->get<std::string>();
    if (const auto options = run.find("options");
        options != run.end() && options->is_object() && options->value("light", nlohmann::json()) == true)
        facts.meta["light"] = options->value("kernels", nlohmann::json()) == "summaries" ? "kernels" : "1";
    if (const auto dump = run.find("dump");
        dump != run.end() && dump->is_object() && dump->value("reason", nlohmann::json()).is_string())
        facts.meta["dump"] = (*dump)["reason"].get<std::string>();
    if (const auto options = run.find("options");
        options != run.end() && options->is_object() && options->contains("env") && (*options)["env"].is_object())
        addVariables((*options)["env"], "run_env.", facts);
    if (const auto start = run.find("environment"); start != run.end() && start->is_object()) {
        facts.meta["start_env"] = "recorded";
        addVariables(*start, "start_env.", facts);
    }
    const auto command = run.find("command");
    const auto isWord = [](const nlohmann::json& word) { return word.is_string(); };
    // Nothing else is a command; dump() calls itself for what is nested.
    if (command != run.end() && command->is_array() && std::all_of(command->begin(), command->end(), isWord))
        facts.meta["command"] = command->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return facts;
}

}  // namespace rankscope::collector

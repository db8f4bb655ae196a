// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/node_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace rankscope::cli {
namespace {

// Value of the first of these options: "--name value" or "--name=value", with dashes or underscores.
std::string option(const std::vector<std::string>& command, std::initializer_list<std::string_view> names) {
    for (size_t i = 1; i < command.size(); ++i) {
        const std::string& word = command[i];
        if (!word.starts_with("--")) continue;
        const size_t equals = std::min(word.find('='), word.size());
        std::string name = word.substr(2, equals - 2);
        std::replace(name.begin(), name.end(), '_', '-');
        if (std::find(names.begin(), names.end(), name) == names.end()) continue;
        if (equals < word.size()) return word.substr(equals + 1);
        if (i + 1 < command.size()) return command[i + 1];
    }
    return {};
}

std::string firstOf(std::initializer_list<std::string> values) {
    for (const std::string& value : values)
        if (!value.empty()) return value;
    return {};
}

// "2", and "1:4" of an elastic job.
bool severalNodes(const std::string& count) {
    const std::string most = count.substr(count.find(':') == std::string::npos ? 0 : count.find(':') + 1);
    return std::atoi(most.c_str()) > 1;
}

}  // namespace

std::optional<std::string> nodeJobKey(const std::vector<std::string>& command, const Environment& environment) {
    const auto variable = [&](const char* name) { return getVariable(environment, name); };
    const std::string nodes = firstOf({option(command, {"nnodes", "num-machines"}), variable("PET_NNODES")});
    // Clusters (Kubernetes) set RANK and WORLD_SIZE for a whole node.
    const bool ofCluster = nodes.empty() && !variable("RANK").empty() && std::atoi(variable("WORLD_SIZE").c_str()) > 1;
    if (!severalNodes(nodes) && !ofCluster) return std::nullopt;
    const std::string id = firstOf({option(command, {"rdzv-id"}), variable("PET_RDZV_ID")});
    std::string place = firstOf({option(command, {"rdzv-endpoint"}), variable("PET_RDZV_ENDPOINT")});
    if (place.empty()) {
        const std::string address =
            firstOf({option(command, {"master-addr", "main-process-ip"}), variable("MASTER_ADDR")});
        if (!address.empty())
            place = fmt::format(
                "{}:{}", address,
                firstOf({option(command, {"master-port", "main-process-port"}), variable("MASTER_PORT"), "29500"}));
    }
    if (id.empty() && place.empty()) return std::nullopt;
    // The node that keeps the rendezvous may call itself localhost: an id is enough.
    return fmt::format("nodes:{}:{}", variable("SLURM_JOB_ID"), id.empty() ? place : id);
}

}  // namespace rankscope::cli

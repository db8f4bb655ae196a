// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string_view>

#include "analyzer/text/lists.h"

namespace rankscope::cli {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// The first of the variables that holds a number.
std::optional<int> number(std::initializer_list<const char*> names) {
    for (const char* name : names) {
        const std::string text = variable(name);
        int value = 0;
        // Only the leading digits: Slurm writes "4(x2)" for four tasks on each of two nodes.
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && value >= 0) return value;
    }
    return std::nullopt;
}

LaunchedRank describe(const std::string& launcher, const std::string& jobKey, int rank,
                      std::initializer_list<const char*> worldSize, std::initializer_list<const char*> localSize) {
    return {launcher, launcher + ":" + jobKey, rank, number(worldSize).value_or(0), number(localSize).value_or(0)};
}

std::string openMpiJob() {
    for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid"})
        if (const std::string value = variable(name); !value.empty()) return value;
    return "unknown";
}

// Value of the first of these options: "--name value" or "--name=value", with dashes or underscores.
std::string option(const std::vector<std::string>& command, std::initializer_list<std::string_view> names) {
    for (size_t i = 1; i < command.size(); ++i) {
        const std::string& word = command[i];
        if (!word.starts_with("--")) continue;
        const size_t equals = std::min(word.find('='), word.size());
        std::string name = word.substr(2, equals - 2);
        std::ranges::replace(name, '_', '-');
        if (!text::contains(names, name)) continue;
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

std::string LaunchedRank::slot() const {
    return fmt::format("{}.{}", rank, attempt);
}

std::optional<LaunchedRank> launchedRankFromEnvironment() {
    // torchrun comes first: started by srun or mpirun on every node, it sets its own variables on top of theirs.
    // LOCAL_RANK must be there because clusters set RANK and WORLD_SIZE for a whole node (a pod) too, and there the
    // launcher is still to come.
    if (const auto rank = number({"RANK"}); rank && number({"LOCAL_RANK"}) && number({"WORLD_SIZE"})) {
        auto result = describe(
            "torchrun",
            fmt::format("{}:{}:{}", variable("MASTER_ADDR"), variable("MASTER_PORT"), variable("TORCHELASTIC_RUN_ID")),
            *rank, {"WORLD_SIZE"}, {"LOCAL_WORLD_SIZE"});
        result.attempt = number({"TORCHELASTIC_RESTART_COUNT"}).value_or(0);
        return result;
    }
    if (const auto rank = number({"OMPI_COMM_WORLD_RANK"}))
        return describe("openmpi", openMpiJob(), *rank, {"OMPI_COMM_WORLD_SIZE"}, {"OMPI_COMM_WORLD_LOCAL_SIZE"});
    if (const auto rank = number({"MV2_COMM_WORLD_RANK"}))
        return describe("mvapich", variable("PMI_ID") + variable("PMI_PORT"), *rank, {"MV2_COMM_WORLD_SIZE"},
                        {"MV2_COMM_WORLD_LOCAL_SIZE"});
    // A batch script has SLURM_PROCID too, but no step: there the launcher is still to come.
    if (const auto rank = number({"SLURM_PROCID"}); rank && !variable("SLURM_STEP_ID").empty())
        return describe("slurm", variable("SLURM_JOB_ID") + "." + variable("SLURM_STEP_ID"), *rank,
                        {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
                        {"SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"});
    if (const auto rank = number({"PMI_RANK"}))
        return describe("pmi", variable("PMI_JOBID") + variable("PMI_PORT"), *rank, {"PMI_SIZE"}, {"MPI_LOCALNRANKS"});
    if (const auto rank = number({"PMIX_RANK"}))
        return describe("pmix", variable("PMIX_NAMESPACE"), *rank, {"PMIX_SIZE"}, {"PMIX_LOCAL_SIZE"});
    return std::nullopt;
}

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

std::string missingForwardOptions(const std::vector<std::string>& command, const std::vector<std::string>& variables) {
    static const std::set<std::string> kOpenMpiLaunchers = {"mpirun", "mpiexec", "orterun", "oshrun", "prterun"};
    static const std::set<std::string> kHostOptions = {
        "-H", "-host", "--host", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "--default-hostfile"};
    if (command.empty() || !kOpenMpiLaunchers.count(std::filesystem::path(command.front()).filename().string()))
        return {};
    if (std::ranges::none_of(command, [](const std::string& word) { return kHostOptions.count(word) > 0; })) return {};
    std::string options;
    for (const auto& name : variables) {
        bool forwarded = false;
        for (size_t i = 0; i + 1 < command.size(); ++i)
            forwarded = forwarded || (command[i] == "-x" && command[i + 1].substr(0, command[i + 1].find('=')) == name);
        if (!forwarded) options += (options.empty() ? "-x " : " -x ") + name;
    }
    return options;
}

}  // namespace rankscope::cli

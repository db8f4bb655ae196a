// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/job/rank_variables.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

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

LaunchedRank describe(std::string launcher, std::string jobKey, int rank, std::initializer_list<const char*> worldSize,
                      std::initializer_list<const char*> localSize) {
    LaunchedRank result;
    result.launcher = std::move(launcher);
    result.jobKey = result.launcher + ":" + std::move(jobKey);
    result.rank = rank;
    result.worldSize = number(worldSize).value_or(0);
    result.localSize = number(localSize).value_or(0);
    return result;
}

std::string openMpiJob() {
    for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid"})
        if (const std::string value = variable(name); !value.empty()) return value;
    return "unknown";
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

}  // namespace rankscope::cli

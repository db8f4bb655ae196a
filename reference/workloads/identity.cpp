// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/identity.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

namespace rankscope::reference {

namespace {

struct LauncherVariables {
    const char* source;
    const char* rank;
    const char* worldSize;
    const char* localRank;  ///< nullptr: not told
};

// The most specific launcher first: mpirun under Slurm sets Slurm's variables too, with the numbers of the outer job.
constexpr std::array kLaunchers = {
    LauncherVariables{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    LauncherVariables{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    LauncherVariables{"pmix", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK"},
    LauncherVariables{"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    LauncherVariables{"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

const char* variable(const char* name) {
    const char* value = name ? getenv(name) : nullptr;
    return value && *value ? value : nullptr;
}

std::optional<int> number(const char* name) {
    const char* text = variable(name);
    if (!text) return std::nullopt;
    char* end = nullptr;
    const long value = strtol(text, &end, 10);
    if (*end || value < 0 || value > 10000000)
        throw IdentityError(std::string(name) + "=" + text + " is not a rank or a number of ranks");
    return static_cast<int>(value);
}

std::string parentKey() {
    // A launcher that names no job: its process, told apart from an earlier one of the same number by its start time
    // (field 22 of stat).
    std::ifstream file("/proc/" + std::to_string(getppid()) + "/stat");
    std::string line;
    std::getline(file, line);
    const size_t afterName = line.rfind(')');
    std::istringstream fields(afterName == std::string::npos ? "" : line.substr(afterName + 1));
    std::string startTime;
    for (int field = 3; field <= 22; ++field) fields >> startTime;
    return "parent:" + std::to_string(getppid()) + ":" + startTime;
}

std::string readJobKey() {
    const auto joined = [](const char* first, const char* second) {
        return std::string(variable(first)) + ":" + (variable(second) ? variable(second) : "");
    };
    std::string key = parentKey();
    if (variable("RANKSCOPE_VGPU_JOB"))
        key = joined("RANKSCOPE_VGPU_JOB", nullptr);
    else if (variable("PMIX_NAMESPACE"))
        key = joined("PMIX_NAMESPACE", "PMIX_SERVER_URI2");
    else if (variable("OMPI_MCA_orte_hnp_uri"))
        key = joined("OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid");
    else if (variable("MASTER_ADDR") && variable("MASTER_PORT"))
        key = joined("MASTER_ADDR", "MASTER_PORT");
    else if (variable("SLURM_JOB_ID"))
        key = joined("SLURM_JOB_ID", "SLURM_STEP_ID");
    if (variable("TORCHELASTIC_RESTART_COUNT")) key += "#" + joined("TORCHELASTIC_RESTART_COUNT", nullptr);
    return key;
}

}  // namespace

Identity readIdentity(const IdentityOptions& options) {
    Identity identity;
    identity.source = "none";
    identity.jobKey = readJobKey();
    for (const LauncherVariables& launcher : kLaunchers) {
        const std::optional<int> rank = number(launcher.rank);
        const std::optional<int> worldSize = number(launcher.worldSize);
        if (!rank || !worldSize) continue;
        identity.rank = *rank;
        identity.worldSize = *worldSize;
        identity.localRank = number(launcher.localRank).value_or(*rank);
        identity.source = launcher.source;
        break;
    }
    if (options.rank >= 0 || options.worldSize >= 0) {
        if (options.rank < 0 || options.worldSize < 0) throw IdentityError("--rank and --world-size belong together");
        identity.rank = identity.localRank = options.rank;
        identity.worldSize = options.worldSize;
        identity.source = "options";
    }
    if (identity.worldSize < 1 || identity.rank >= identity.worldSize)
        throw IdentityError("rank " + std::to_string(identity.rank) + " of " + std::to_string(identity.worldSize) +
                            " ranks makes no sense");
    return identity;
}

}  // namespace rankscope::reference

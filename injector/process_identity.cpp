// SPDX-License-Identifier: Apache-2.0
#include "injector/process_identity.h"

#include "injector/text.h"

namespace rankscope::injector {
namespace {

using Get = const char* (*)(const char*);

int32_t number(Get get, const char* name) noexcept {
    int64_t value = -1;
    if (!parseNumber(get(name), value) || value < 0 || value > INT32_MAX) return -1;
    return static_cast<int32_t>(value);
}

struct Launcher {
    const char* source;
    const char* rank;
    const char* localRank;
    const char* worldSize;
    const char* jobId;
};

constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"},
    {"pmi", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", "PMI_JOBID"},
    {"slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_JOB_ID"},
    {"pmix", "PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE", "PMIX_NAMESPACE"},
};

}  // namespace

ProcessIdentity readIdentity(Get get) noexcept {
    ProcessIdentity identity;
    for (const Launcher& launcher : kLaunchers) {
        const int32_t rank = number(get, launcher.rank);
        if (rank < 0) continue;
        identity.rank = rank;
        identity.localRank = number(get, launcher.localRank);
        identity.worldSize = number(get, launcher.worldSize);
        copyText(identity.source, launcher.source);
        copyText(identity.jobId, get(launcher.jobId));
        break;
    }
    const int32_t attempt = number(get, "TORCHELASTIC_RESTART_COUNT");
    if (attempt > 0) identity.attempt = attempt;
    return identity;
}

}  // namespace rankscope::injector

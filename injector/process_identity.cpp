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

constexpr const char* kAllowedPrefixes[] = {
    "NCCL_", "CUDA_", "TORCH_", "TORCHELASTIC_", "PYTORCH_", "OMPI_COMM_WORLD_", "PMI_", "PMIX_RANK", "PMIX_NAMESPACE"};
constexpr const char* kAllowedNames[] = {"RANK",
                                         "LOCAL_RANK",
                                         "WORLD_SIZE",
                                         "LOCAL_WORLD_SIZE",
                                         "GROUP_RANK",
                                         "GROUP_WORLD_SIZE",
                                         "ROLE_RANK",
                                         "ROLE_NAME",
                                         "MASTER_ADDR",
                                         "MASTER_PORT",
                                         "OMP_NUM_THREADS",
                                         "MPI_LOCALRANKID",
                                         "MPI_LOCALNRANKS",
                                         "RANKSCOPE_LINKS",
                                         "RANKSCOPE_TRACE",
                                         "RANKSCOPE_CAPTURE_RANGE",
                                         "RANKSCOPE_DELAY_S",
                                         "RANKSCOPE_DURATION_S",
                                         "RANKSCOPE_MAX_BYTES",
                                         "RANKSCOPE_CLOCK",
                                         "RANKSCOPE_HOST",
                                         "SLURM_JOB_ID",
                                         "SLURM_PROCID",
                                         "SLURM_LOCALID",
                                         "SLURM_NODEID",
                                         "SLURM_NTASKS",
                                         "SLURM_NNODES",
                                         "SLURM_JOB_NUM_NODES",
                                         "SLURM_TASKS_PER_NODE",
                                         "SLURM_NODELIST",
                                         "SLURM_CPUS_PER_TASK",
                                         "SLURM_CPU_BIND",
                                         "SLURM_GPUS_ON_NODE"};
constexpr const char* kSecrets[] = {"KEY",        "TOKEN", "SECRET", "PASSWORD", "PASSWD",
                                    "CREDENTIAL", "AUTH",  "JWT",    "COOKIE"};

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

bool isRecordableVariable(const char* name, uint64_t length) noexcept {
    FixedText<256> upper;
    for (uint64_t i = 0; i < length; ++i) {
        const char c = name[i] >= 'a' && name[i] <= 'z' ? static_cast<char>(name[i] - 'a' + 'A') : name[i];
        upper.append(&c, 1);
    }
    if (upper.wasCut()) return false;
    for (const char* secret : kSecrets)
        if (std::strstr(upper.c_str(), secret) != nullptr) return false;
    for (const char* prefix : kAllowedPrefixes)
        if (length > std::strlen(prefix) - 1 && std::strncmp(name, prefix, std::strlen(prefix)) == 0) return true;
    for (const char* allowed : kAllowedNames)
        if (length == std::strlen(allowed) && std::strncmp(name, allowed, length) == 0) return true;
    return false;
}

}  // namespace rankscope::injector

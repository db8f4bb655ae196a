// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::injector {

/// Who this process is in the job, as its launcher says in the environment.
struct ProcessIdentity {
    int32_t rank = -1;
    int32_t localRank = -1;
    int32_t worldSize = -1;
    int32_t attempt = 0;
    char source[32] = "none";  ///< "torchrun", "openmpi", "pmix", "pmi", "slurm", "none"
    char jobId[128] = {};
};

/// torchrun wins over MPI, because it may run below mpirun or srun with one agent per node.
ProcessIdentity readIdentity(const char* (*get)(const char* name)) noexcept;

}  // namespace rankscope::injector

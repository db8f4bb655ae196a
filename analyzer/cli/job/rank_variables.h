// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace rankscope::cli {

// One rank of a job whose launcher started `rankscope run` itself ("launcher outside"): read from the variables that
// launchers set.
struct LaunchedRank {
    std::string launcher;  // openmpi | pmix | pmi | slurm | torchrun | mvapich
    std::string jobKey;    // the same for all ranks of the job, on every host
    int rank = 0;
    int worldSize = 0;         // 0: unknown
    int localSize = 0;         // ranks of this host; 0: unknown
    int attempt = 0;           // elastic restart count
    std::string slot() const;  // names this rank and attempt inside the job
};

// Nothing when no launcher is around this process.
std::optional<LaunchedRank> launchedRankFromEnvironment();

}  // namespace rankscope::cli

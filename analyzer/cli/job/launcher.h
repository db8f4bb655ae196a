// SPDX-License-Identifier: Apache-2.0
// Launchers, as seen from a wrapper: around it, behind it in the command, and on other hosts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/cli/job/job_process.h"

namespace rankscope::cli {

// Describes one rank of a job whose launcher started `rankscope run` itself ("launcher outside"): read from the
// variables that launchers set.
struct LaunchedRank {
    std::string launcher;  // openmpi | pmix | pmi | slurm | torchrun | mvapich
    std::string jobKey;    // the same for all ranks of the job, on every host
    int rank = 0;
    int worldSize = 0;         // 0: unknown
    int localSize = 0;         // ranks of this host; 0: unknown
    int attempt = 0;           // elastic restart count
    std::string slot() const;  // names this rank and attempt inside the job
};

// Returns nothing when no launcher is around this process.
std::optional<LaunchedRank> launchedRankFromEnvironment();

// Returns what tells the wrappers of one job from those of another where each node has its own launcher (torchrun,
// accelerate) inside a wrapper: the rendezvous id, else where the nodes meet (`--rdzv-endpoint`, `--master-addr` and
// port, MASTER_ADDR and MASTER_PORT), with the scheduler's job if there is one. Nothing for a command that starts one
// node only.
std::optional<std::string> nodeJobKey(const std::vector<std::string>& command, const Environment& environment);

// Open MPI starts ranks on other hosts over ssh without our variables. The words to add to such a command (-x NAME …);
// empty for any other command, or when they are there already.
std::string missingForwardOptions(const std::vector<std::string>& command, const std::vector<std::string>& variables);

}  // namespace rankscope::cli

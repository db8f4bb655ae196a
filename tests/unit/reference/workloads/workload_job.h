// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a workload on the virtual GPUs, waits for them, and keeps what they printed.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace rankscope::reference {

struct JobResult {
    std::vector<int> status;          ///< exit status per rank; 128 + signal for a killed one
    std::vector<std::string> output;  ///< stdout and stderr of each rank
    std::vector<std::map<std::string, std::vector<size_t>>>
        calls;  ///< per rank: bytes of each NCCL call, by op, in call order
};

/// One process per rank, as torchrun would start them. `environment` is added to every rank's.
JobResult runJob(const std::string& scenarioText, int ranks,
                 const std::map<std::string, std::string>& environment = {});

/// Runs a shell command; returns its exit status and puts its output into `output`.
int runShell(const std::string& command, std::string& output);

/// A folder of this test process, emptied when it ends.
std::string scratchFolder();

}  // namespace rankscope::reference

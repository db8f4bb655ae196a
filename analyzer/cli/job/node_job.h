// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/cli/job/job_process.h"

namespace rankscope::cli {

// What tells the wrappers of one job from those of another where each node has its own launcher (torchrun, accelerate)
// inside a wrapper: the rendezvous id, else where the nodes meet (`--rdzv-endpoint`, `--master-addr` and port,
// MASTER_ADDR and MASTER_PORT), with the scheduler's job if there is one. Nothing for a command that starts one node
// only.
std::optional<std::string> nodeJobKey(const std::vector<std::string>& command, const Environment& environment);

}  // namespace rankscope::cli

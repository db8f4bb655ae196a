// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "analyzer/cli/stacks/stall_watch.h"

namespace rankscope::cli {

// The living processes below `ancestor` that record into the folder, by pid. Others, as the ranks of other wrappers
// beside it, are theirs to watch. Of a process that executed another program the newest recording counts.
std::vector<WatchedProcess> watchedProcesses(const std::filesystem::path& captureFolder, pid_t ancestor);

}  // namespace rankscope::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <vector>

namespace rankscope::cli {

// Processes of this machine that still record into the capture folder, ascending. A process that has ended leaves no
// ring file, or one whose name (HOST.PID.START) is that of no process any more.
std::vector<pid_t> liveRanks(const std::filesystem::path& captureFolder);

}  // namespace rankscope::cli

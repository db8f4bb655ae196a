// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace rankscope::score {

struct CommandEnd {
    int status = 0;  ///< as a shell tells it: 128 + signal for a death by a signal
    bool timedOut = false;
    std::string messages;  ///< the last lines it wrote on stderr
};

/// Runs a command to its end, with its output in `log`. After `timeoutS` seconds, or once `stop` is set, it gets
/// SIGTERM and two seconds later its whole process group SIGKILL. It also gets SIGTERM when this process dies.
CommandEnd runCommand(const std::vector<std::string>& words, const std::filesystem::path& log, int timeoutS,
                      const std::atomic<bool>& stop);

}  // namespace rankscope::score

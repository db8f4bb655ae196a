// SPDX-License-Identifier: Apache-2.0
// rankscope-health RUN-DIRECTORY WRAPPER alone|beside: looks after the devices of a job until its standard input ends.
// `rankscope run`, process WRAPPER, starts it; `beside` others on this host, where the launcher is outside.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>

#include "analyzer/cli/health/health_log.h"

namespace {

/// Waits; false when the job has ended.
bool isStillWanted(int atMostMs) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, atMostMs) <= 0;
}

}  // namespace

int main(int argc, char** argv) {
    pid_t wrapper = 0;
    if (argc != 4 || std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), wrapper).ec != std::errc()) return 2;
    // A second, by which clocks and power do not change much; sooner at first, for a job that soon ends.
    constexpr int kPeriodMs = 1000, kFirstMs = 50;
    try {
        rankscope::cli::HealthLog log(argv[1], wrapper, std::strcmp(argv[3], "alone") == 0);
        for (int waitMs = kFirstMs; isStillWanted(waitMs); waitMs = std::min(2 * waitMs, kPeriodMs))
            if (!log.look()) return 1;
        log.lastLook();
    } catch (const std::exception&) {  // nobody listens; what is missing in the file is told by the collector
        return 1;
    }
    return 0;
}

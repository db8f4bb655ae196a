// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankscope::machine {

/// What a port of the host has counted since it was brought up. Nothing: its driver does not count it.
struct PortCounters {
    std::string name;  ///< as of host_ports.h: "mlx5_0/1", "eth0"
    std::optional<int64_t> sentBytes, receivedBytes;
    std::optional<int64_t> errors;     ///< damaged symbols and packets, both ways
    std::optional<int64_t> discards;   ///< packets that were dropped or could not be sent
    std::optional<int64_t> linkDowns;  ///< times that the link went down or had to recover
};

/// Of the ports that addHostPorts() finds below `sysfs`. Allocates and reads files: for a process beside the job.
std::vector<PortCounters> readPortCounters(const char* sysfs);

}  // namespace rankscope::machine

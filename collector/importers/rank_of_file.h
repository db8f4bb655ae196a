// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rankscope::collector {

/// The rank that a file's name tells: "rank-34.Jul.json", "rank0_iter16.json", "worker3_step_12.json". The last such
/// word in the name counts.
std::optional<int32_t> rankFromFileName(std::string_view name);

/// What torch.profiler writes into a file's name unless it is told another one: "HOST_PID.TIME.pt.trace.json".
struct ProfilerFileName {
    std::string host;
    int64_t pid = 0;
};
std::optional<ProfilerFileName> parseProfilerFileName(std::string_view name);

}  // namespace rankscope::collector

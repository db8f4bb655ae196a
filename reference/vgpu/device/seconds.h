// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::vgpu {

inline constexpr int64_t kNsPerMs = 1'000'000;
inline constexpr int64_t kNsPerS = 1'000'000'000;

}  // namespace rankscope::vgpu

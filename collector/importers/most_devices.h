// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::collector {

/// No host has as many devices: what a damaged file claims must not become a rank each.
inline constexpr int64_t kMostDevices = 255;

}  // namespace rankscope::collector

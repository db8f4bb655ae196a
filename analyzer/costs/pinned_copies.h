// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankscope::costs {

/// GB/s that a pinned copy is taken to run at when the trace has none: PCIe 4.0 x16, the slowest host link of devices
/// that train today.
inline constexpr double kUnseenPinnedGbps = 25;

}  // namespace rankscope::costs

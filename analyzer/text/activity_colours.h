// SPDX-License-Identifier: Apache-2.0
// The one set of colours for what a device does, in pages and in the window. The hues are Okabe and Ito's
// (jfly.uni-koeln.de/color), which people with any colour vision can tell apart; the dark set is lighter.
#pragma once

#include <cstdint>

namespace rankscope::text {

/// As 0xRRGGBB.
struct ActivityColours {
    uint32_t compute, overlapped, transfer, waiting, memory;
};

inline constexpr ActivityColours kActivitiesOnLight{0x0072b2, 0x009e73, 0xd55e00, 0xe69f00, 0xcc79a7};
inline constexpr ActivityColours kActivitiesOnDark{0x3b95d0, 0x14b48a, 0xe8742a, 0xedb02e, 0xd78fb6};

}  // namespace rankscope::text

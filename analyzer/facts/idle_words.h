// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace rankscope::facts {

/// Why a device idles, for a reader: of a cause as trace.db and the JSON name it ("late_launch": "the host launches
/// late").
std::string_view inWords(std::string_view idleCause);

}  // namespace rankscope::facts

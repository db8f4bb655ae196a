// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "analyzer/text/plain_text.h"

namespace rankscope::exports {

/// The name that an event of a kernel has: readable, and no longer than a viewer's column.
inline std::string exportedKernelName(std::string_view name) {
    constexpr size_t kLongest = 200;
    return text::readableKernelName(name, kLongest);
}

}  // namespace rankscope::exports

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rankscope::cli {

// "500M", "2GiB", "1.5g", "4096": binary multiples for K, M, G and T with or without "iB"/"B". Throws
// std::invalid_argument.
int64_t parseBytes(std::string_view text);

// "1.4 GiB"
std::string formatBytes(int64_t bytes);

}  // namespace rankscope::cli

// SPDX-License-Identifier: Apache-2.0
// Times and sizes as tests write them, in nanoseconds and bytes.
#pragma once

#include <cstdint>

namespace rankscope::test {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kKibi = 1024;
constexpr int64_t kMebi = 1024 * kKibi;

}  // namespace rankscope::test

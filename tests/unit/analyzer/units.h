// SPDX-License-Identifier: Apache-2.0
// Times as tests write them, in nanoseconds.
#pragma once

#include <cstdint>

namespace rankscope::test {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;

}  // namespace rankscope::test

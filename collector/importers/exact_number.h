// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rankscope::collector {

/// Nanoseconds of a decimal text in microseconds ("1694128201436271", "4458677009853.422", "1.5e3"), computed on the
/// digits: a double would lose the nanoseconds of a Unix time. What is below a nanosecond is rounded half away from
/// zero. Empty: no number, or out of int64's range.
std::optional<int64_t> nanosecondsFromMicroseconds(std::string_view text);

/// An integer of up to 64 bits; values above int64 keep their bits (a hash of uint64 type). A fraction of zeros is
/// accepted ("7.0").
std::optional<int64_t> integerFromText(std::string_view text);

}  // namespace rankscope::collector

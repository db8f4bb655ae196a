// SPDX-License-Identifier: Apache-2.0
// Where things stand in a SQLite file (https://www.sqlite.org/fileformat2.html): its header (section 1.3), and pages of
// tables (section 1.6): a header, an array of two-byte cell offsets growing up, cells growing down.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::store {

inline constexpr size_t kHeaderBytes = 100;
inline constexpr size_t kPageSizeAt = 16, kReadVersionAt = 19, kReservedAt = 20, kChangeCounterAt = 24,
                        kPageCountAt = 28, kVersionValidForAt = 92;

inline constexpr uint8_t kLeafPage = 0x0d, kInteriorPage = 0x05;
inline constexpr size_t kLeafHeader = 8, kInteriorHeader = 12;
inline constexpr size_t kCellCountAt = 3, kContentStartAt = 5, kRightmostAt = 8;
inline constexpr size_t kOffsetBytes = 2;
inline constexpr size_t kLongestVarint = 9;

}  // namespace rankscope::store

// SPDX-License-Identifier: Apache-2.0
// Fields of protobuf messages, as bytes.
#pragma once

#include <cstdint>
#include <string>

namespace rankscope::tests {

inline std::string pbVarint(uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
}

inline std::string pbNumber(uint32_t field, int64_t value) {
    return pbVarint(uint64_t{field} << 3) + pbVarint(static_cast<uint64_t>(value));
}

/// A text, bytes or a message.
inline std::string pbBytes(uint32_t field, const std::string& bytes) {
    return pbVarint(uint64_t{field} << 3 | 2) + pbVarint(bytes.size()) + bytes;
}

}  // namespace rankscope::tests

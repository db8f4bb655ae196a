// SPDX-License-Identifier: Apache-2.0
// Numbers as SQLite's file format has them: most significant byte first.
#pragma once

#include <cstdint>
#include <cstring>

namespace rankscope::store {

inline void storeBig16(uint8_t* at, uint32_t value) noexcept {
    at[0] = static_cast<uint8_t>(value >> 8);
    at[1] = static_cast<uint8_t>(value);
}

inline void storeBig32(uint8_t* at, uint32_t value) noexcept {
    const uint32_t swapped = __builtin_bswap32(value);
    std::memcpy(at, &swapped, sizeof swapped);
}

inline void storeBig64(uint8_t* at, uint64_t value) noexcept {
    const uint64_t swapped = __builtin_bswap64(value);
    std::memcpy(at, &swapped, sizeof swapped);
}

inline uint32_t loadBig32(const uint8_t* at) noexcept {
    uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return __builtin_bswap32(value);
}

inline size_t loadBig16(const uint8_t* at) noexcept {
    return static_cast<size_t>(at[0] << 8 | at[1]);
}

inline uint64_t loadBig64(const uint8_t* at) noexcept {
    uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return __builtin_bswap64(value);
}

/// A variable-length integer of at most nine bytes (file format, section 1.6); moves `at` on. False where it goes
/// beyond `end`.
inline bool loadVarint(const uint8_t*& at, const uint8_t* end, uint64_t& value) noexcept {
    value = 0;
    for (int i = 0; i < 9 && at < end; ++i) {
        const uint8_t byte = *at++;
        value = i < 8 ? value << 7 | (byte & 0x7f) : value << 8 | byte;
        if (i == 8 || byte < 0x80) return true;
    }
    return false;
}

/// As above, to be written. Returns its length.
inline size_t storeVarint(uint8_t* at, uint64_t value) noexcept {
    if (value < 0x80) {
        at[0] = static_cast<uint8_t>(value);
        return 1;
    }
    if (value >> 56) {
        at[8] = static_cast<uint8_t>(value);
        value >>= 8;
        for (int i = 7; i >= 0; --i, value >>= 7) at[i] = static_cast<uint8_t>(value | 0x80);
        return 9;
    }
    uint8_t reversed[8];
    size_t length = 0;
    for (; value != 0; value >>= 7) reversed[length++] = static_cast<uint8_t>((value & 0x7f) | 0x80);
    reversed[0] &= 0x7f;
    for (size_t i = 0; i < length; ++i) at[i] = reversed[length - 1 - i];
    return length;
}

}  // namespace rankscope::store

// SPDX-License-Identifier: Apache-2.0
// A row as SQLite's record format has it (https://www.sqlite.org/fileformat2.html, section 2.1). For writer.cpp only.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>

#include "collector/store/big_endian.h"
#include "collector/store/column_access.h"
#include "collector/store/tables.h"

namespace rankscope::store {

/// Longest text a row of this encoding may hold: its serial type is then one byte.
inline constexpr size_t kLongestWord = 57;

/// Writes the serial type to `types` and the value to `body`; moves both on. `body` must have eight bytes more than the
/// value needs.
inline void encodeInteger(int64_t value, uint8_t*& types, uint8_t*& body) noexcept {
    if (value == 0 || value == 1) {
        *types++ = static_cast<uint8_t>(8 + value);
        return;
    }
    static constexpr uint8_t kTypeOfBytes[9] = {0, 1, 2, 3, 4, 5, 5, 6, 6};
    static constexpr uint8_t kBytesOfType[7] = {0, 1, 2, 3, 4, 6, 8};
    const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
    const int bits = magnitude == 0 ? 1 : 65 - __builtin_clzll(magnitude);  // with the sign
    const uint8_t type = kTypeOfBytes[(bits + 7) / 8];
    *types++ = type;
    const size_t bytes = kBytesOfType[type];
    storeBig64(body, static_cast<uint64_t>(value) << (64 - 8 * bytes));
    body += bytes;
}

template <typename Value>
void encodeValue(const Value& value, uint8_t*& types, uint8_t*& body) noexcept {
    if constexpr (kIsTextEnum<Value>) {
        const std::string_view text = toText(value);
        *types++ = static_cast<uint8_t>(text.empty() ? 0 : 13 + 2 * text.size());
        std::memcpy(body, text.data(), text.size());
        body += text.size();
    } else {
        static_assert(std::is_integral_v<Value> || std::is_enum_v<Value>,
                      "only numbers and words have a known longest length");
        encodeInteger(static_cast<int64_t>(value), types, body);
    }
}

template <typename Value>
void encodeValue(const std::optional<Value>& value, uint8_t*& types, uint8_t*& body) noexcept {
    if (value)
        encodeValue(*value, types, body);
    else
        *types++ = 0;
}
template <typename Value>
void encodeValue(const MaybeNumber<Value>& value, uint8_t*& types, uint8_t*& body) noexcept {
    if (value)
        encodeValue(*value, types, body);
    else
        *types++ = 0;
}

template <typename Row>
inline constexpr size_t kColumnCount = std::tuple_size_v<std::decay_t<decltype(Table<Row>::kColumns)>>;

/// Room that every row of a type fits in.
template <typename Row>
inline constexpr size_t kRecordRoom = 1 + kColumnCount<Row>*(1 + kLongestWord) + 8;

/// The record of a row whose first column is its INTEGER PRIMARY KEY, which the record holds as NULL. Returns its bytes
/// in `record`.
template <typename Row>
size_t encodeRow(const Row& row, uint8_t* record) noexcept {
    constexpr size_t kHeader = 1 + kColumnCount<Row>;
    static_assert(kHeader < 0x80, "the header's length takes one byte");
    record[0] = kHeader;
    record[1] = 0;
    uint8_t* types = record + 2;
    uint8_t* body = record + kHeader;
    std::apply([&](const auto&, const auto&... column) { (encodeValue(row.*column.field, types, body), ...); },
               Table<Row>::kColumns);
    return static_cast<size_t>(body - record);
}

}  // namespace rankscope::store

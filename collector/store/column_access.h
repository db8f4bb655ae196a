// SPDX-License-Identifier: Apache-2.0
// How a C++ value becomes a SQLite value and back. For writer.cpp and reader.cpp only.
#pragma once

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "collector/store/maybe_number.h"
#include "collector/store/vocabulary.h"

namespace rankscope::store {

template <typename Value>
inline constexpr bool kIsTextEnum =
    std::is_same_v<Value, Op> || std::is_same_v<Value, Algorithm> || std::is_same_v<Value, Protocol> ||
    std::is_same_v<Value, DataType> || std::is_same_v<Value, RankState> || std::is_same_v<Value, Severity>;

inline void putText(sqlite3_context* context, std::string_view text, void (*lifetime)(void*)) {
    sqlite3_result_text(context, text.data(), static_cast<int>(text.size()), lifetime);
}

template <typename Value>
void putValue(sqlite3_context* context, const Value& value) {
    if constexpr (kIsTextEnum<Value>) {
        const std::string_view text = toText(value);
        text.empty() ? sqlite3_result_null(context) : putText(context, text, SQLITE_STATIC);
    } else if constexpr (std::is_same_v<Value, std::string>) {
        putText(context, value, SQLITE_STATIC);  // the span outlives the INSERT … SELECT that reads it
    } else if constexpr (std::is_floating_point_v<Value>) {
        sqlite3_result_double(context, value);
    } else {
        sqlite3_result_int64(context, static_cast<sqlite3_int64>(value));
    }
}

template <typename Value>
void putValue(sqlite3_context* context, const std::optional<Value>& value) {
    value ? putValue(context, *value) : sqlite3_result_null(context);
}
template <typename Value>
void putValue(sqlite3_context* context, const MaybeNumber<Value>& value) {
    value ? putValue(context, *value) : sqlite3_result_null(context);
}

inline std::string_view takeText(sqlite3_stmt* statement, int column) {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
    return bytes ? std::string_view(bytes, static_cast<size_t>(sqlite3_column_bytes(statement, column)))
                 : std::string_view();
}

template <typename Value>
void takeValue(sqlite3_stmt* statement, int column, Value& value) {
    if constexpr (kIsTextEnum<Value>) {
        value = fromText<Value>(takeText(statement, column));
    } else if constexpr (std::is_same_v<Value, std::string>) {
        value = takeText(statement, column);
    } else if constexpr (std::is_floating_point_v<Value>) {
        value = sqlite3_column_double(statement, column);
    } else {
        // What does not fit (a damaged file) is the nearest that does: cut off bits would make another id of it.
        using Number = typename std::conditional_t<std::is_enum_v<Value>, std::underlying_type<Value>,
                                                   std::type_identity<Value>>::type;
        const int64_t whole = sqlite3_column_int64(statement, column);
        if constexpr (std::is_same_v<Number, bool>)
            value = whole != 0;
        else if constexpr (sizeof(Number) < sizeof whole)
            value = static_cast<Value>(
                std::clamp<int64_t>(whole, std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max()));
        else
            value = static_cast<Value>(whole);
    }
}

template <typename Value>
void takeValue(sqlite3_stmt* statement, int column, std::optional<Value>& value) {
    if (sqlite3_column_type(statement, column) == SQLITE_NULL) {
        value.reset();
        return;
    }
    takeValue(statement, column, value.emplace());
}
template <typename Value>
void takeValue(sqlite3_stmt* statement, int column, MaybeNumber<Value>& value) {
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        value.reset();
    else
        takeValue(statement, column, value.emplace());
}

}  // namespace rankscope::store

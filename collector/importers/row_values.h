// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "collector/store/tables.h"

namespace rankscope::collector {

/// A column's value as a document tells it: at most one of the two.
struct ToldValue {
    std::optional<int64_t> number;
    std::optional<std::string_view> text;
};

/// Sets a field of a row. False where the value is of another type, or the field cannot hold it.
template <typename Value>
bool setValue(Value& field, const ToldValue& told) {
    if constexpr (requires { field.has_value(); }) {
        std::remove_reference_t<decltype(*field)> value{};
        if (!setValue(value, told)) return false;
        field = value;
        return true;
    } else if constexpr (std::is_same_v<Value, std::string>) {
        if (!told.text) return false;
        field = *told.text;
        return true;
    } else if constexpr (requires { store::toText(field); }) {
        if (!told.text) return false;
        field = store::fromText<Value>(*told.text);
        return true;
    } else {
        if (!told.number) return false;
        field = static_cast<Value>(*told.number);
        return static_cast<int64_t>(field) == *told.number;
    }
}

/// Sets all columns of a row that `told(name)` knows (std::optional<ToldValue>). False when one of them cannot be set;
/// columns that are not told keep their values.
template <typename Row, typename Told>
bool setColumns(Row& row, Told&& told) {
    bool good = true;
    std::apply(
        [&](const auto&... column) {
            const auto set = [&](const char* name, auto& field) {
                if (const std::optional<ToldValue> value = told(name)) good = setValue(field, *value) && good;
            };
            (set(column.name, row.*(column.field)), ...);
        },
        store::Table<Row>::kColumns);
    return good;
}

}  // namespace rankscope::collector

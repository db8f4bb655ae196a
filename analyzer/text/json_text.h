// SPDX-License-Identifier: Apache-2.0
// Sources that write JSON share these. It brings the library's own header along, so that no header includes it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace rankscope::text {

using Json = nlohmann::ordered_json;

template <typename T>
Json orNull(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

/// Null stands for an empty text.
inline Json orNull(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

/// Rounds times and bytes, which are whole in every schema.
int64_t whole(double value);
Json wholeOrNull(const std::optional<double>& value);

template <typename Rows, typename Function>
Json arrayOf(const Rows& rows, Function&& function) {
    Json array = Json::array();
    for (const auto& row : rows) array.push_back(function(row));
    return array;
}

/// Writes a document that people can read, too: indented, with a newline at its end. Bytes that are no text become
/// U+FFFD.
std::string jsonText(const Json& json, int indent = 2);

/// Writes it on one line without a newline.
std::string jsonLine(const Json& json);

}  // namespace rankscope::text

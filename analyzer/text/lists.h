// SPDX-License-Identifier: Apache-2.0
// Rows and words in a number that people read.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::text {

/// "1 step", "3 steps".
std::string countedText(std::integral auto number, std::string_view noun) {
    return std::to_string(number).append(" ").append(noun).append(number == 1 ? "" : "s");
}

/// Joins the texts in their order with `between` between them; what is empty leaves no trace but its separator.
template <typename Texts>
std::string joined(const Texts& texts, std::string_view between = ", ") {
    std::string all;
    bool isFirst = true;
    for (const auto& text : texts) {
        if (!isFirst) all += between;
        all += text;
        isFirst = false;
    }
    return all;
}

template <typename Values, typename Value>
bool contains(const Values& values, const Value& value) {
    return std::ranges::find(values, value) != std::ranges::end(values);
}

/// Returns the first rows, `most` of them.
template <typename Row>
std::span<const Row> first(const std::vector<Row>& rows, size_t most) {
    return std::span(rows).first(std::min(rows.size(), most));
}

/// Returns what a map has at a key; a value of its type that is 0 or empty where it has none.
template <typename Map>
typename Map::mapped_type valueAt(const Map& map, const typename Map::key_type& key) {
    const auto found = map.find(key);
    return found == map.end() ? typename Map::mapped_type{} : found->second;
}

/// Returns the key that was counted most often, the first of several; empty when nothing was counted.
template <typename Count>
std::string mostCommon(const std::map<std::string, Count>& counts) {
    const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
    return most == counts.end() ? "" : most->first;
}

}  // namespace rankscope::text

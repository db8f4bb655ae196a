// SPDX-License-Identifier: Apache-2.0
// Rows and words in a number that people read.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::text {

/// "1 step", "3 steps".
std::string countedText(std::integral auto number, std::string_view noun) {
    return std::to_string(number).append(" ").append(noun).append(number == 1 ? "" : "s");
}

/// The texts in their order with `between` between them; what is empty leaves no trace but its separator.
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

/// The first rows, `most` of them.
template <typename Row>
std::span<const Row> first(const std::vector<Row>& rows, size_t most) {
    return std::span(rows).first(std::min(rows.size(), most));
}

}  // namespace rankscope::text

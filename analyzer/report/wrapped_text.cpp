// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/wrapped_text.h"

#include <algorithm>

namespace rankscope::report {
namespace {

/// Characters of UTF-8: continuation bytes do not count.
size_t width(std::string_view text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string wrapped(std::string_view text, std::string_view first, size_t columns) {
    const std::string indent(width(first), ' ');
    std::string out(first), line(first);
    bool empty = true;
    for (size_t start = 0; start < text.size();) {
        const size_t end = std::min(text.find(' ', start), text.size());
        const std::string_view word = text.substr(start, end - start);
        start = end + 1;
        if (word.empty()) continue;
        if (!empty && width(line) + 1 + width(word) > columns) {
            out += "\n" + indent;
            line = indent;
            empty = true;
        }
        const std::string piece = (empty ? "" : " ") + std::string(word);
        out += piece;
        line += piece;
        empty = false;
    }
    return out + "\n";
}

}  // namespace rankscope::report

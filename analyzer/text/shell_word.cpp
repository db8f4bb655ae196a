// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/shell_word.h"

#include <algorithm>

namespace rankscope::text {
namespace {

// Bytes above 127 are parts of letters, which no shell looks into.
bool isPlain(char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        static_cast<unsigned char>(c) > 127;
    return letter || std::string_view("_-./,:+@%").find(c) != std::string_view::npos;
}

}  // namespace

std::string shellWord(std::string_view word) {
    return !word.empty() && std::ranges::all_of(word, isPlain) ? std::string(word) : shellQuoted(word);
}

std::string shellQuoted(std::string_view word) {
    std::string text = "'";
    for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

}  // namespace rankscope::text

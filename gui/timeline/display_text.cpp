// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/display_text.h"

#include <cstdint>

namespace rankscope::gui {
namespace {

constexpr std::string_view kDot = "\u00b7";

bool isContinuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// U+200E, U+200F, U+202A..U+202E and U+2066..U+2069: E2 80 8E.., E2 80 AA.., E2 81 A6..
bool isDirectionMark(std::string_view character) {
    if (character.size() != 3 || character[0] != '\xE2') return false;
    const auto second = static_cast<uint8_t>(character[1]), third = static_cast<uint8_t>(character[2]);
    if (second == 0x80) return third == 0x8E || third == 0x8F || (third >= 0xAA && third <= 0xAE);
    return second == 0x81 && third >= 0xA6 && third <= 0xA9;
}

}  // namespace

std::string displayText(std::string_view text, size_t maxBytes) {
    std::string shown;
    for (size_t i = 0; i < text.size();) {
        size_t next = i + 1;
        while (next < text.size() && isContinuation(text[next])) ++next;
        const std::string_view character = text.substr(i, next - i);
        i = next;
        const auto first = static_cast<uint8_t>(character[0]);
        const bool c1Control = character.size() == 2 && first == 0xC2 && static_cast<uint8_t>(character[1]) < 0xA0;
        if (isDirectionMark(character)) continue;
        const std::string_view piece = first < 0x20 || first == 0x7F || c1Control ? kDot : character;
        if (shown.size() + piece.size() > maxBytes) return shown + "\u2026";
        shown += piece;
    }
    return shown;
}

}  // namespace rankscope::gui

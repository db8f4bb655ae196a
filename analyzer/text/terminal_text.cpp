// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "analyzer/text/plain_text.h"

namespace rankscope::text {
namespace {

constexpr const char* kNoBreak = "\u00a0";  // two bytes of UTF-8
constexpr std::string_view kShadeBegins = "\x1b[";

/// Bytes of the shade (ECMA-48, SGR) that a text begins with; 0: it begins with none.
size_t shadeBytes(std::string_view text) {
    if (!text.starts_with(kShadeBegins)) return 0;
    const size_t end = text.find_first_not_of("0123456789;", kShadeBegins.size());
    return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

/// Counts characters of UTF-8: continuation bytes are none.
size_t width(std::string_view text) {
    return static_cast<size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string Painter::operator()(Shade shade, std::string_view text) const {
    constexpr const char* kCodes[] = {"", "1", "2", "31", "33", "32", "36", "1;31", "1;32"};
    if (!m_colour || shade == Shade::plain) return std::string(text);
    return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(shade)], text);
}

std::string terminalText(std::string_view text, bool colour) {
    std::string out;
    while (!text.empty()) {
        const size_t shade = colour ? shadeBytes(text) : 0;
        // What is behind an escape character that begins no shade is text.
        const size_t end = shade != 0 ? shade : std::min(text.find('\x1b', 1), text.size());
        out += shade != 0 ? std::string(text.substr(0, end)) : plainText(text.substr(0, end));
        text.remove_prefix(end);
    }
    return out;
}

namespace {

// Of a number in front of it: "86.1" and "ms)," belong together.
bool isUnit(std::string_view word) {
    static constexpr std::string_view kUnits[]{"%", "ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "GB/s"};
    word = word.substr(0, word.find_last_not_of(",.;:)") + 1);
    return std::ranges::find(kUnits, word) != std::end(kUnits);
}

// Where the word at `start` ends, with the unit of a number.
size_t endOfWord(std::string_view text, size_t start) {
    const size_t end = std::min(text.find(' ', start), text.size());
    if (end == start || end == text.size() || !std::isdigit(static_cast<unsigned char>(text[end - 1]))) return end;
    const size_t next = std::min(text.find(' ', end + 1), text.size());
    return isUnit(text.substr(end + 1, next - end - 1)) ? next : end;
}

}  // namespace

std::string wrapped(std::string_view text, std::string_view first, size_t columns) {
    const std::string indent(width(first), ' ');
    std::string out(first), line(first);
    bool empty = true;
    for (size_t start = 0; start < text.size();) {
        const size_t end = endOfWord(text, start);
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

std::string withUnbrokenCommands(std::string_view text) {
    const auto isOption = [](std::string_view word) {
        return word.size() > 1 && word[0] == '-' &&
               (word[1] == '-' || std::isalpha(static_cast<unsigned char>(word[1])));
    };
    std::string out, last;
    for (size_t start = 0; start <= text.size();) {
        const size_t end = std::min(text.find(' ', start), text.size());
        const std::string word(text.substr(start, end - start));
        start = end + 1;
        const bool isValue = isOption(last) && last.find('=') == std::string::npos && !last.ends_with(',') &&
                             !last.ends_with(';') && !word.starts_with('(');
        if (!out.empty()) out += isOption(word) || isValue ? kNoBreak : " ";
        out += word;
        last = word;
    }
    return out;
}

std::string withPlainSpaces(std::string text) {
    for (size_t at = 0; (at = text.find(kNoBreak, at)) != std::string::npos;) text.replace(at, 2, " ");
    return text;
}

}  // namespace rankscope::text

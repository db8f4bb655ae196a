// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/plain_text.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "collector/store/symbol_name.h"

namespace rankscope::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Character {
    uint32_t code = 0;
    size_t bytes = 0;  // 0: not valid here
};

/// Accepts well-formed byte sequences only (The Unicode Standard, table 3-7).
Character decode(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const size_t bytes = lead >= 0xC2 && lead <= 0xDF   ? 2
                         : (lead & 0xF0) == 0xE0        ? 3
                         : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                        : 0;
    if (bytes == 0 || text.size() < bytes) return {};
    uint32_t code = lead & (0xFFu >> (bytes + 1));
    for (size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3Fu);
    }
    constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kSmallest[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
    return {code, bytes};
}

bool isUnprintable(uint32_t code) {
    const bool control = (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7F && code <= 0x9F);
    // Embeddings, overrides and isolates would turn the order of what follows them.
    const bool turnsOrder = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    return control || turnsOrder || (code & 0xFFFE) == 0xFFFE || (code >= 0xFDD0 && code <= 0xFDEF);
}

template <typename Take>
void forEachCharacter(std::string_view text, Take&& take) {
    while (!text.empty()) {
        const Character character = decode(text);
        if (character.bytes == 0 || isUnprintable(character.code))
            take(kReplacement);
        else
            take(text.substr(0, character.bytes));
        text.remove_prefix(character.bytes == 0 ? 1 : character.bytes);
    }
}

/// Returns the character reference of what markup would read; empty for all other characters.
std::string_view referenceOf(char c) {
    constexpr std::pair<char, std::string_view> kReferences[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    const auto found = std::ranges::find(kReferences, c, &std::pair<char, std::string_view>::first);
    return found == std::end(kReferences) ? std::string_view() : found->second;
}

bool beginsWww(std::string_view text) {
    const auto isW = [&](size_t i) { return text[i] == 'w' || text[i] == 'W'; };
    return text.size() > 3 && isW(0) && isW(1) && isW(2) && text[3] == '.';
}

// Bytes above 127 are parts of letters, which no shell looks into.
bool isPlain(char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        static_cast<unsigned char>(c) > 127;
    return letter || std::string_view("_-./,:+@%").find(c) != std::string_view::npos;
}

}  // namespace

std::string plainText(std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size());
    forEachCharacter(bytes, [&](std::string_view character) { text += character; });
    return text;
}

std::string oneLine(std::string_view bytes) {
    std::string text;
    constexpr std::string_view kLineSeparator = "\xE2\x80\xA8", kParagraphSeparator = "\xE2\x80\xA9";
    forEachCharacter(bytes, [&](std::string_view character) {
        const bool breaks =
            character == "\n" || character == "\t" || character == kLineSeparator || character == kParagraphSeparator;
        text += breaks ? " " : character;
    });
    return text;
}

std::string shortened(std::string text, size_t most) {
    constexpr std::string_view kEllipsis = "\xE2\x80\xA6";
    if (text.size() <= most) return text;
    size_t end = most > kEllipsis.size() ? most - kEllipsis.size() : 0;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
    return text.append(kEllipsis);
}

std::string markupText(std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size());
    forEachCharacter(bytes, [&](std::string_view character) {
        const std::string_view reference = referenceOf(character.front());
        text += reference.empty() ? character : reference;
    });
    return text;
}

std::string markdownText(std::string_view bytes, size_t longest) {
    const std::string text = shortened(oneLine(bytes), longest);
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const std::string_view rest = std::string_view(text).substr(i);
        if (c == '&' || c == '<' || c == '>') {
            out += referenceOf(c);
        } else if (c == '@') {
            out += "&#64;";
        } else if (rest.starts_with("://")) {
            out += "&#58;";
        } else if (beginsWww(rest)) {  // www.x.org is a link too
            out.append(rest.substr(0, 3)).append("&#46;");
            i += 3;
        } else {
            constexpr std::string_view kMarks = "\\`*_[]|~$", kMarksAtTheStart = "#-+=";
            if (kMarks.find(c) != kMarks.npos || (i == 0 && kMarksAtTheStart.find(c) != kMarks.npos)) out += '\\';
            out += c;
        }
    }
    return out;
}

std::string shellWord(std::string_view word) {
    return !word.empty() && std::ranges::all_of(word, isPlain) ? std::string(word) : shellQuoted(word);
}

std::string shellQuoted(std::string_view word) {
    std::string text = "'";
    for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

std::string readableKernelName(std::string_view name, size_t longest) {
    std::string text(name);
    if (std::optional<std::string> plain = store::demangled(name)) {
        text = plain->substr(0, store::parametersOf(*plain));
        if (text.starts_with("void ")) text.erase(0, 5);  // templates carry their return type
    }
    if (text.size() > longest) text = text.substr(0, longest - 3) + "...";
    return text;
}

std::string cutForSummary(std::string document) {
    constexpr size_t kMostBytes = 1'000'000;
    if (document.size() <= kMostBytes) return document;
    document.resize(document.rfind('\n', kMostBytes));
    return document + "\n\nThe rest is left out: --format json has all.\n";
}

}  // namespace rankscope::text

// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/json_scan.h"

#include <algorithm>

namespace rankscope::collector {

namespace {

// Keys at the top level of an event, in any writer's order. A nested object may start with one of them too; then
// parsing fails and finds back.
constexpr std::string_view kEventKeys[] = {"ph\"", "cat\"", "name\"", "args\"", "pid\"", "tid\"",
                                           "ts\"", "dur\"", "id\"",   "bp\"",   "s\""};

// Members of the document that writers put behind the events.
constexpr std::string_view kDocumentKeys[] = {"\"traceName\"",       "\"displayTimeUnit\"",  "\"baseTimeNanoseconds\"",
                                              "\"distributedInfo\"", "\"deviceProperties\"", "\"schemaVersion\"",
                                              "\"otherData\""};

// How far the white space between two events may reach.
constexpr size_t kMaxGap = 256;

bool startsEvent(std::string_view text, size_t brace) {
    size_t at = brace;
    size_t gap = 0;
    bool comma = false;
    while (at > 0 && gap++ < kMaxGap) {
        const char c = text[--at];
        if (isJsonSpace(c)) continue;
        if (c == ',' && !comma) {
            comma = true;
            continue;
        }
        if (c != '}' || !comma) return false;
        break;
    }
    if (!comma || text[at] != '}') return false;
    at = brace + 1;
    while (at < text.size() && at - brace < kMaxGap && isJsonSpace(text[at])) ++at;
    if (at >= text.size() || text[at] != '"') return false;
    const std::string_view rest = text.substr(at + 1);
    for (const std::string_view key : kEventKeys) {
        if (rest.substr(0, key.size()) == key) return true;
    }
    return false;
}

/// Length of the valid UTF-8 sequence at the start of `text`, 0 when invalid.
size_t utf8Length(std::string_view text) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto tail = [&](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
    if (lead >= 0xe0 && lead <= 0xef) {
        if (!tail(1) || !tail(2)) return 0;
        if (lead == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
        if (lead == 0xed && byte(1) > 0x9f) return 0;  // surrogate
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        if (!tail(1) || !tail(2) || !tail(3)) return 0;
        if (lead == 0xf0 && byte(1) < 0x90) return 0;
        if (lead == 0xf4 && byte(1) > 0x8f) return 0;
        return 4;
    }
    return 0;
}

}  // namespace

std::string_view withoutLeadingSpace(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    while (!text.empty() && isJsonSpace(text.front())) text.remove_prefix(1);
    return text;
}

size_t ValueScanner::feed(std::string_view piece) {
    for (size_t i = 0; i < piece.size(); ++i) {
        const char c = piece[i];
        if (m_inString) {
            if (m_escaped) {
                m_escaped = false;
            } else if (c == '\\') {
                m_escaped = true;
            } else if (c == '"') {
                m_inString = false;
                if (m_depth == 0) return i + 1;
            }
            continue;
        }
        if (m_state == State::word) {
            if (isJsonSpace(c) || c == ',' || c == '}' || c == ']' || c == ':') return i;
            continue;
        }
        switch (c) {
            case '"':
                m_inString = true;
                m_state = State::nested;
                break;
            case '{':
            case '[':
                ++m_depth;
                m_state = State::nested;
                break;
            case '}':
            case ']':
                if (m_depth == 0) return i;
                if (--m_depth == 0) return i + 1;
                break;
            default:
                if (m_state == State::start && !isJsonSpace(c)) m_state = State::word;
                break;
        }
    }
    return kNotFound;
}

size_t findEventStart(std::string_view text, size_t from) {
    for (size_t at = text.find('{', from); at != std::string_view::npos; at = text.find('{', at + 1)) {
        if (startsEvent(text, at)) return at;
    }
    return kNotFound;
}

size_t findLastEventStart(std::string_view text) {
    for (size_t at = text.rfind('{'); at != std::string_view::npos && at > 0; at = text.rfind('{', at - 1)) {
        if (startsEvent(text, at)) return at;
    }
    return kNotFound;
}

size_t findEventsEnd(std::string_view text, bool textEnds) {
    const auto skipSpace = [text](size_t at) {
        while (at < text.size() && isJsonSpace(text[at])) ++at;
        return at;
    };
    for (size_t end = text.find(']'); end != std::string_view::npos; end = text.find(']', end + 1)) {
        size_t at = skipSpace(end + 1);
        if (at < text.size() && text[at] == ',') {
            const std::string_view rest = text.substr(skipSpace(at + 1));
            for (const std::string_view key : kDocumentKeys) {
                if (rest.substr(0, key.size()) == key) return end;
            }
            continue;
        }
        if (at < text.size() && text[at] == '}') at = skipSpace(at + 1);
        if (textEnds && at == text.size()) return end;
    }
    return kNotFound;
}

std::string_view firstBytes(std::string_view text, size_t most) {
    if (text.size() <= most) return text;
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0u) == 0x80u) --most;
    return text.substr(0, most);
}

std::string sanitiseUtf8(std::string_view text, size_t& firstInvalid, size_t& count) {
    std::string clean;
    clean.reserve(text.size() + 16);
    firstInvalid = kNotFound;
    count = 0;
    size_t copied = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t length = utf8Length(text.substr(at, 4));
        if (length > 0) {
            at += length;
            continue;
        }
        if (firstInvalid == kNotFound) firstInvalid = at;
        ++count;
        clean.append(text, copied, at - copied);
        clean += "\xef\xbf\xbd";
        copied = ++at;
    }
    clean.append(text, copied);
    return clean;
}

}  // namespace rankscope::collector

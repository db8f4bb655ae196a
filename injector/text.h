// SPDX-License-Identifier: Apache-2.0
// Text without the heap: what the preloaded library needs of <string>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rankscope::injector {

/// A text of at most N - 1 bytes; what does not fit is cut and remembered.
template <size_t N>
class FixedText {
  public:
    constexpr FixedText() = default;

    FixedText& append(const char* text, size_t bytes) noexcept {
        if (bytes > N - 1 - m_length) {
            bytes = N - 1 - m_length;
            m_cut = true;
        }
        std::memcpy(m_text + m_length, text, bytes);
        m_length += bytes;
        m_text[m_length] = '\0';
        return *this;
    }
    FixedText& append(const char* text) noexcept { return text == nullptr ? *this : append(text, std::strlen(text)); }
    FixedText& append(int64_t number) noexcept {
        char digits[24];
        size_t at = sizeof digits;
        const bool negative = number < 0;
        uint64_t rest = negative ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
        do digits[--at] = static_cast<char>('0' + rest % 10);
        while ((rest /= 10) != 0 && at > 1);  // 20 digits at most, so there is always room for the sign
        if (negative) digits[--at] = '-';
        return append(digits + at, sizeof digits - at);
    }
    void clear() noexcept {
        m_length = 0;
        m_text[0] = '\0';
        m_cut = false;
    }
    const char* c_str() const noexcept { return m_text; }
    size_t size() const noexcept { return m_length; }
    bool empty() const noexcept { return m_length == 0; }
    bool wasCut() const noexcept { return m_cut; }

  private:
    size_t m_length = 0;
    bool m_cut = false;
    char m_text[N] = {};
};

/// Whether `word`, in small letters, is somewhere in a text, in whatever letters.
inline bool containsWord(const char* text, size_t bytes, const char* word) noexcept {
    const size_t length = std::strlen(word);
    for (size_t i = 0; i + length <= bytes; ++i) {
        size_t same = 0;
        while (same < length && (text[i + same] | 0x20) == word[same]) ++same;
        if (same == length) return true;
    }
    return false;
}

/// Reads a whole decimal number; false and unchanged when `text` is anything else.
inline bool parseNumber(const char* text, int64_t& value) noexcept {
    if (text == nullptr) return false;
    const bool negative = *text == '-';
    if (negative) ++text;
    if (*text == '\0') return false;
    int64_t number = 0;
    for (; *text != '\0'; ++text) {
        if (*text < '0' || *text > '9' || number > (INT64_MAX - 9) / 10) return false;
        number = number * 10 + (*text - '0');
    }
    value = negative ? -number : number;
    return true;
}

/// Seconds with an optional fraction, in nanoseconds; false and unchanged when `text` is anything else.
inline bool parseSeconds(const char* text, int64_t& ns) noexcept {
    if (text == nullptr || *text == '\0' || *text == '.') return false;
    int64_t whole = 0;
    for (; *text >= '0' && *text <= '9'; ++text) {
        if (whole > 1'000'000'000) return false;
        whole = whole * 10 + (*text - '0');
    }
    int64_t fraction = 0;
    int64_t unit = 100'000'000;
    if (*text == '.')
        for (++text; *text >= '0' && *text <= '9'; ++text, unit /= 10) fraction += (*text - '0') * unit;
    if (*text != '\0') return false;
    ns = whole * 1'000'000'000 + fraction;
    return true;
}

inline bool startsWith(const char* text, const char* prefix) noexcept {
    return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

template <size_t N>
void copyText(char (&into)[N], const char* text) noexcept {
    if (text == nullptr) text = "";
    size_t length = std::strlen(text);
    if (length > N - 1) length = N - 1;
    std::memcpy(into, text, length);
    std::memset(into + length, 0, N - length);
}

}  // namespace rankscope::injector

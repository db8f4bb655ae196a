// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/exact_number.h"

#include <limits>

namespace rankscope::collector {

namespace {

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

/// A decimal number taken apart: value = digits * 10^exponent, digits cut after kMaxDigits significant ones (no ns time
/// needs more).
struct Decimal {
    static constexpr int kMaxDigits = 36;
    bool negative = false;
    unsigned __int128 digits = 0;
    int exponent = 0;
};

std::optional<Decimal> parseDecimal(std::string_view text) {
    Decimal number;
    size_t at = 0;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) number.negative = text[at++] == '-';
    int count = 0;
    bool any = false;
    bool fraction = false;
    for (; at < text.size(); ++at) {
        if (text[at] == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!isDigit(text[at])) break;
        any = true;
        if (count < Decimal::kMaxDigits) {
            number.digits = number.digits * 10 + static_cast<unsigned>(text[at] - '0');
            if (number.digits != 0) ++count;
            if (fraction) --number.exponent;
        } else if (!fraction) {
            ++number.exponent;
        }
    }
    if (!any) return std::nullopt;
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        bool negative = false;
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) negative = text[at++] == '-';
        int exponent = 0;
        if (at == text.size()) return std::nullopt;
        for (; at < text.size() && isDigit(text[at]); ++at) {
            if (exponent < 100000) exponent = exponent * 10 + (text[at] - '0');
        }
        number.exponent += negative ? -exponent : exponent;
    }
    if (at != text.size()) return std::nullopt;
    return number;
}

std::optional<int64_t> toInteger(Decimal number) {
    constexpr auto kMax = static_cast<unsigned __int128>(std::numeric_limits<int64_t>::max());
    while (number.exponent > 0 && number.digits != 0) {
        if (number.digits > kMax) return std::nullopt;
        number.digits *= 10;
        --number.exponent;
    }
    unsigned lastCut = 0;
    while (number.exponent < 0 && number.digits != 0) {
        lastCut = static_cast<unsigned>(number.digits % 10);
        number.digits /= 10;
        ++number.exponent;
    }
    if (number.exponent == 0 && lastCut >= 5) ++number.digits;
    if (number.digits > kMax) return std::nullopt;
    const auto value = static_cast<int64_t>(number.digits);
    return number.negative ? -value : value;
}

}  // namespace

std::optional<int64_t> nanosecondsFromMicroseconds(std::string_view text) {
    // The common shapes, up to 15 digits before the point and three behind, without 128-bit arithmetic.
    int64_t value = 0;
    size_t at = 0;
    while (at < text.size() && isDigit(text[at]) && at < 16) value = value * 10 + (text[at++] - '0');
    const bool small = at > 0 && value < std::numeric_limits<int64_t>::max() / 1000;
    if (small && at == text.size()) return value * 1000;
    if (small && text[at] == '.') {
        ++at;
        int decimals = 0;
        while (at < text.size() && isDigit(text[at]) && decimals < 3) {
            value = value * 10 + (text[at++] - '0');
            ++decimals;
        }
        if (decimals > 0 && at == text.size()) {
            for (; decimals < 3; ++decimals) value *= 10;
            return value;
        }
    }
    auto number = parseDecimal(text);
    if (!number) return std::nullopt;
    number->exponent += 3;
    return toInteger(*number);
}

std::optional<int64_t> integerFromText(std::string_view text) {
    const auto number = parseDecimal(text);
    if (!number) return std::nullopt;
    if (number->exponent == 0 && !number->negative && number->digits <= std::numeric_limits<uint64_t>::max()) {
        return static_cast<int64_t>(static_cast<uint64_t>(number->digits));
    }
    Decimal whole = *number;
    while (whole.exponent < 0 && whole.digits != 0) {
        if (whole.digits % 10 != 0) return std::nullopt;
        whole.digits /= 10;
        ++whole.exponent;
    }
    if (whole.digits == 0) return 0;
    return toInteger(whole);
}

}  // namespace rankscope::collector

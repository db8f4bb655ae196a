// SPDX-License-Identifier: Apache-2.0
#include "gui/session/name_pattern.h"

#include <regex.h>

#include <algorithm>
#include <cctype>

namespace rankscope::gui {
namespace {

constexpr size_t kMaxExpression = 1000;
constexpr int64_t kMaxRepeats = 1000;  // of all {n} multiplied: the compiled expression grows with it

// Repeat counts of the expression multiplied, as far as kMaxRepeats.
int64_t repeats(std::string_view expression) {
    int64_t product = 1;
    for (size_t i = 0; i < expression.size(); ++i) {
        if (expression[i] == '\\') {
            ++i;
        } else if (expression[i] == '{') {
            int64_t largest = 1, number = 0;
            for (++i; i < expression.size() && expression[i] != '}'; ++i) {
                number = std::isdigit(static_cast<unsigned char>(expression[i]))
                             ? std::min<int64_t>(number * 10 + (expression[i] - '0'), 2 * kMaxRepeats)
                             : 0;
                largest = std::max(largest, number);
            }
            product = std::min(product * largest, 2 * kMaxRepeats);
        }
    }
    return product;
}

struct Translation {
    std::string expression;
    std::string error;
};

// The characters that a class such as \d stands for, inside brackets; empty for an escaped character.
std::string_view classOf(char letter) {
    switch (letter) {
        case 'd':
            return "0-9";
        case 'w':
            return "[:alnum:]_";
        case 's':
            return "[:space:]";
        default:
            return {};
    }
}

// A bracket expression from its '[' on; `at` moves behind its ']'. POSIX knows no escapes in it.
std::string bracket(std::string_view expression, size_t& at) {
    std::string posix(1, expression[at++]);
    if (at < expression.size() && expression[at] == '^') posix += expression[at++];
    if (at < expression.size() && expression[at] == ']') posix += expression[at++];
    while (at < expression.size() && expression[at] != ']') {
        const char c = expression[at++];
        if (c == '[' && at < expression.size() && expression[at] == ':') {  // [:alpha:]
            posix += c;
            while (at < expression.size() && expression[at] != ']') posix += expression[at++];
            if (at < expression.size()) posix += expression[at++];
        } else if (c == '\\' && at < expression.size()) {
            const std::string_view letters = classOf(expression[at]);
            posix += letters.empty() ? expression.substr(at, 1) : letters;
            ++at;
        } else {
            posix += c;
        }
    }
    if (at < expression.size()) posix += expression[at++];
    return posix;
}

// POSIX has no \d and takes a back-reference at exponential cost; of the groups that begin with (?, only (?: means
// nothing that it cannot do.
Translation toPosix(std::string_view expression) {
    Translation posix;
    for (size_t i = 0; i < expression.size();) {
        const char c = expression[i];
        const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
        if (c == '\0') return {{}, "the expression holds a NUL character"};
        if (c == '[') {
            posix.expression += bracket(expression, i);
        } else if (c == '(' && next == '?') {
            if (expression.substr(i, 3) != "(?:") return {{}, "groups that begin with (? are not supported"};
            posix.expression += '(';
            i += 3;
        } else if (c == '\\') {
            if (next >= '1' && next <= '9') return {{}, "back-references such as \\1 are not supported"};
            if (next == 'd' || next == 'D')
                posix.expression += next == 'd' ? "[0-9]" : "[^0-9]";
            else
                posix.expression += expression.substr(i, 2);
            i += 2;
        } else {
            posix.expression += c;
            ++i;
        }
    }
    return posix;
}

}  // namespace

struct NamePattern::Compiled {
    regex_t regex{};
    ~Compiled() { regfree(&regex); }
};

NamePattern::NamePattern(const std::string& expression, bool caseSensitive) {
    if (expression.empty()) return;
    if (expression.size() > kMaxExpression) {
        m_error = "the expression is longer than " + std::to_string(kMaxExpression) + " characters";
        return;
    }
    if (repeats(expression) > kMaxRepeats) {
        m_error = "the expression repeats more than " + std::to_string(kMaxRepeats) + " times";
        return;
    }
    const Translation posix = toPosix(expression);
    m_error = posix.error;
    if (!m_error.empty()) return;
    auto compiled = std::make_unique<Compiled>();
    const int code =
        regcomp(&compiled->regex, posix.expression.c_str(), REG_EXTENDED | REG_NOSUB | (caseSensitive ? 0 : REG_ICASE));
    if (code != 0) {
        char reason[200];
        regerror(code, &compiled->regex, reason, sizeof reason);
        m_error = reason;
        return;
    }
    m_compiled = std::move(compiled);
}

NamePattern::~NamePattern() = default;

bool NamePattern::matches(std::string_view name) const {
    if (!m_compiled) return m_error.empty();
    regmatch_t part{};  // REG_STARTEND: the name need not end with NUL
    part.rm_so = 0;
    part.rm_eo = static_cast<regoff_t>(std::min(name.size(), kMaxName));
    return regexec(&m_compiled->regex, name.empty() ? "" : name.data(), 0, &part, REG_STARTEND) == 0;
}

}  // namespace rankscope::gui

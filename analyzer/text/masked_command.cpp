// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/masked_command.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace rankscope::text {
namespace {

constexpr std::string_view kMask = "***";
constexpr std::string_view kBetweenParts = "-_.";

// What a part of a name says of the value, wherever it stands.
constexpr std::string_view kSecretParts[] = {"password",    "passwd",        "passphrase", "pass",   "pwd",
                                             "secret",      "credential",    "jwt",        "cookie", "dsn",
                                             "credentials", "authorization", "bearer",     "apikey", "authtoken"};
// These only at the end: `--token-dim` and `--key-value-heads` are no secrets.
constexpr std::string_view kSecretEnds[] = {"token", "key"};
constexpr std::string_view kSchemes[] = {"Bearer", "Basic", "Token", "bearer", "basic", "token"};  // RFC 9110, 11

bool isOneOf(std::string_view part, const auto& words) {
    return std::ranges::find(words, part) != std::end(words);
}

bool speaksOfASecret(std::string_view name) {
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    std::string_view last;
    for (size_t begin = 0; begin <= lower.size();) {
        const size_t end = std::min(lower.find_first_of(kBetweenParts, begin), lower.size());
        last = std::string_view(lower).substr(begin, end - begin);
        if (isOneOf(last, kSecretParts)) return true;
        begin = end + 1;
    }
    return isOneOf(last, kSecretEnds);
}

std::string withoutUrlCredentials(const std::string& word) {
    std::string result;
    size_t done = 0;
    for (size_t at = word.find("://"); at != std::string::npos; at = word.find("://", done)) {
        const size_t user = at + 3;
        const size_t end = std::min(word.find_first_of("/?#,;\"' \t\n", user), word.size());
        const size_t sign = std::string_view(word).substr(0, end).rfind('@');
        result += word.substr(done, user - done);
        const bool found = sign != std::string::npos && sign >= user;
        if (found) result += kMask;
        done = found ? sign : user;
    }
    return result + word.substr(done);
}

/// Goes through the words of a command; what a word says of the next one is kept from one to the next.
class Masker {
  public:
    std::string masked(const std::string& word) {
        if (m_nextIsSecret && !word.starts_with("--")) {
            m_nextIsSecret =
                isOneOf(bare(word), kSchemes);  // `Authorization: Bearer …`: the word behind it is the secret
            return m_nextIsSecret ? word : std::string(kMask);
        }
        if (word.find(' ') != std::string::npos) return maskedPhrase(word);
        const size_t equals = word.find('=');
        const std::string_view name = bare(std::string_view(word).substr(0, equals));
        if (equals == std::string::npos) {
            m_nextIsSecret = isHeader(name) || (word.starts_with("-") && speaksOfASecret(name));
            return withoutUrlCredentials(word);
        }
        if (speaksOfASecret(name)) return word.substr(0, equals + 1).append(kMask);
        m_nextIsSecret = isHeader(bare(std::string_view(word).substr(equals + 1)));
        return withoutUrlCredentials(word);
    }

  private:
    static std::string_view bare(std::string_view name) {
        const size_t begin = name.find_first_not_of("-\"'");
        return begin == std::string_view::npos ? std::string_view() : name.substr(begin);
    }

    /// Says whether a word is the name of a header with a secret, as in `Authorization: Bearer …`.
    static bool isHeader(std::string_view word) {
        return word.ends_with(':') && speaksOfASecret(word.substr(0, word.size() - 1));
    }

    std::string maskedPhrase(const std::string& phrase) {
        Masker inner;
        std::string result;
        for (size_t begin = 0; begin <= phrase.size();) {
            const size_t end = std::min(phrase.find(' ', begin), phrase.size());
            const std::string piece = phrase.substr(begin, end - begin);
            result += piece.empty() ? piece : inner.masked(piece);
            if (end < phrase.size()) result += ' ';
            begin = end + 1;
        }
        m_nextIsSecret = false;
        return result;
    }

    bool m_nextIsSecret = false;
};

}  // namespace

std::vector<std::string> maskedCommand(const std::vector<std::string>& words) {
    Masker masker;
    std::vector<std::string> result;
    for (const std::string& word : words) result.push_back(masker.masked(word));
    return result;
}

}  // namespace rankscope::text

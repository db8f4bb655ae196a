// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/range_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace rankscope::facts {
namespace {

/// Splits a name into lower-case words: at anything but letters, and where a capital follows a small letter
/// (DataLoader: data, loader).
std::vector<std::string> wordsOf(std::string_view name) {
    std::vector<std::string> words(1);
    bool afterSmall = false;
    for (const char raw : name) {
        const auto c = static_cast<unsigned char>(raw);
        if (!std::isalpha(c) || (std::isupper(c) && afterSmall)) words.emplace_back();
        afterSmall = std::islower(c) != 0;
        if (std::isalpha(c)) words.back() += static_cast<char>(std::tolower(c));
    }
    std::erase_if(words, [](const std::string& word) { return word.empty(); });
    return words;
}

template <size_t N>
bool isOneOf(const std::string& word, const std::array<std::string_view, N>& words) {
    return std::ranges::find(words, word) != words.end();
}

}  // namespace

bool namesDataLoading(std::string_view name) {
    constexpr std::array<std::string_view, 7> kWhat = {"data",    "batch",  "input",  "inputs",
                                                       "batches", "sample", "samples"};
    constexpr std::array<std::string_view, 14> kHow = {"load",     "loader",   "loading", "next",    "get",
                                                       "fetch",    "prefetch", "read",    "reading", "wait",
                                                       "pipeline", "time",     "iter",    "host"};
    constexpr std::array<std::string_view, 6> kWhole = {"dataloader", "dataloading", "dataload",
                                                        "getbatch",   "nextbatch",   "loadbatch"};
    const std::vector<std::string> words = wordsOf(name);
    if (std::ranges::any_of(words, [&](const std::string& word) { return isOneOf(word, kWhole); })) return true;
    if (words.size() == 1) return isOneOf(words[0], kWhat);
    for (size_t i = 1; i < words.size(); ++i) {
        const bool forward = isOneOf(words[i - 1], kWhat) && isOneOf(words[i], kHow);
        const bool backward = isOneOf(words[i - 1], kHow) && isOneOf(words[i], kWhat);
        if (forward || backward) return true;
    }
    return false;
}

}  // namespace rankscope::facts

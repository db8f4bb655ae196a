// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/nearest_word.h"

#include <fmt/format.h>

#include <algorithm>

namespace rankscope::text {
namespace {

// Damerau-Levenshtein distance (neighbours exchanged count once).
size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i)
        for (size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            rows[i][j] =
                std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    return rows[a.size()][b.size()];
}

}  // namespace

std::string nearestWord(std::string_view word, const std::vector<std::string>& known) {
    constexpr size_t kLongestTypo = 64;  // a longer word is no typo, and the table would be large
    if (word.size() > kLongestTypo) return {};
    std::string nearest;
    size_t best = std::max<size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : known)
        if (const size_t apart = distance(word, candidate); apart < best) {
            best = apart;
            nearest = candidate;
        }
    return nearest;
}

std::string didYouMean(std::string_view word, const std::vector<std::string>& known) {
    const std::string nearest = nearestWord(word, known);
    return nearest.empty() ? std::string() : fmt::format("did you mean {}? ", nearest);
}

}  // namespace rankscope::text

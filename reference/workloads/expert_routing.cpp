// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/expert_routing.h"

#include <algorithm>
#include <cmath>

namespace rankscope::reference {

std::vector<int64_t> routeTokens(int64_t tokens, int experts, const ExpertSkew& skew) {
    std::vector<int64_t> result(static_cast<size_t>(experts), 0);
    const bool skewed = skew.factor != 1 && experts > 1;
    const double wanted = skew.factor * static_cast<double>(tokens) / experts;
    const int64_t hot = skewed ? std::clamp<int64_t>(std::llround(wanted), 0, tokens) : 0;
    const int64_t others = skewed ? experts - 1 : experts;
    int64_t place = 0;
    for (int expert = 0; expert < experts; ++expert) {
        if (skewed && expert == skew.expert % experts) {
            result[static_cast<size_t>(expert)] = hot;
            continue;
        }
        const int64_t rest = tokens - hot;
        result[static_cast<size_t>(expert)] = rest * (place + 1) / others - rest * place / others;
        ++place;
    }
    return result;
}

std::vector<int64_t> tokensPerRank(const std::vector<int64_t>& tokensPerExpert, int ranks) {
    std::vector<int64_t> result(static_cast<size_t>(ranks), 0);
    const size_t each = tokensPerExpert.size() / static_cast<size_t>(ranks);
    for (size_t expert = 0; expert < tokensPerExpert.size(); ++expert) result[expert / each] += tokensPerExpert[expert];
    return result;
}

}  // namespace rankscope::reference

// SPDX-License-Identifier: Apache-2.0
// How a router spreads tokens over experts. Every token goes to one expert (Fedus et al., "Switch Transformers", 2021),
// none is dropped, and every rank's tokens are spread alike.
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope::reference {

/// The most wanted expert gets `factor` times the mean; 1 is balanced.
struct ExpertSkew {
    double factor = 1;
    int expert = 0;
};

/// Tokens for each expert; they add up to `tokens`, and equal shares differ by one at most.
std::vector<int64_t> routeTokens(int64_t tokens, int experts, const ExpertSkew& skew = {});

/// Tokens for each of `ranks` ranks, which hold equal numbers of neighbouring experts.
std::vector<int64_t> tokensPerRank(const std::vector<int64_t>& tokensPerExpert, int ranks);

}  // namespace rankscope::reference

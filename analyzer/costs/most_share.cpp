// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/most_share.h"

#include <algorithm>

namespace rankscope::costs {

using store::Algorithm;

double mostShare(const LinkModel& link, store::Op op, AlgorithmChoice choice) {
    const double most = bandwidthShare(link, op, choice, kAnySize).high;
    const bool told = choice.algorithm == Algorithm::ring || choice.algorithm == Algorithm::tree ||
                      choice.algorithm == Algorithm::pat;
    if (told) return most;
    const bool reduces = op == store::Op::allReduce;
    if (link.nodes <= 1)
        return reduces ? std::max(most, bandwidthShare(link, op, {Algorithm::nvls, choice.protocol}, kAnySize).high)
                       : most;
    // Switches of the network add up: each byte leaves its node once. So it does where each node gets each byte once.
    return std::max(most, reduces ? 2 : static_cast<double>(link.nodes) / (link.nodes - 1));
}

}  // namespace rankscope::costs

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "collector/store/vocabulary.h"

namespace rankscope::facts {

/// Returns how often a ring carries each part of a message around; 0 for what goes straight through.
inline double ringRounds(store::Op op) {
    if (op == store::Op::allReduce) return 2;
    return op == store::Op::allGather || op == store::Op::reduceScatter || op == store::Op::allToAll ? 1 : 0;
}

/// Returns nccl-tests' bus factor: busbw = bytes / time * busFactor (doc/PERFORMANCE.md of nccl-tests).
inline double busFactor(store::Op op, int ranks) {
    const double n = std::max(ranks, 1);
    return ringRounds(op) > 0 ? ringRounds(op) * (n - 1) / n : 1;
}

/// Returns how many latencies follow each other in NCCL's usual algorithm: ring all-reduce 2(P-1), all-gather,
/// reduce-scatter and all-to-all P-1, others 1.
inline double latencyHops(store::Op op, int ranks) {
    return ringRounds(op) > 0 ? ringRounds(op) * (std::max(ranks, 2) - 1) : 1;
}

}  // namespace rankscope::facts

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/operation.h"

#include <algorithm>

namespace rankscope::facts {
namespace {

/// Returns how often a ring carries each part of a message around; 0 for what goes straight through.
double rounds(store::Op op) {
    switch (op) {
        case store::Op::allReduce:
            return 2;
        case store::Op::allGather:
        case store::Op::reduceScatter:
        case store::Op::allToAll:
            return 1;
        default:
            return 0;
    }
}

}  // namespace

double busFactor(store::Op op, int ranks) {
    const double n = std::max(ranks, 1);
    return rounds(op) > 0 ? rounds(op) * (n - 1) / n : 1;
}

double latencyHops(store::Op op, int ranks) {
    return rounds(op) > 0 ? rounds(op) * (std::max(ranks, 2) - 1) : 1;
}

}  // namespace rankscope::facts

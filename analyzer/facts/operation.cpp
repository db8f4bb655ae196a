// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/operation.h"

#include <algorithm>

namespace rankscope::facts {

double busFactor(store::Op op, int ranks) {
    const double n = std::max(ranks, 1);
    switch (op) {
        case store::Op::allReduce:
            return 2 * (n - 1) / n;
        case store::Op::allGather:
        case store::Op::reduceScatter:
        case store::Op::allToAll:
            return (n - 1) / n;
        default:
            return 1;
    }
}

double startupHops(store::Op op, int ranks) {
    const double n = std::max(ranks, 2);
    switch (op) {
        case store::Op::allReduce:
            return 2 * (n - 1);
        case store::Op::allGather:
        case store::Op::reduceScatter:
        case store::Op::allToAll:
            return n - 1;
        default:
            return 1;
    }
}

}  // namespace rankscope::facts

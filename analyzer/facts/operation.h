// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/store/vocabulary.h"

namespace rankscope::facts {

/// Returns nccl-tests' bus factor: busbw = bytes / time * busFactor (doc/PERFORMANCE.md of nccl-tests).
double busFactor(store::Op op, int ranks);

/// Returns how many latencies follow each other in NCCL's usual algorithm: ring all-reduce 2(P-1), all-gather,
/// reduce-scatter and all-to-all P-1, others 1.
double latencyHops(store::Op op, int ranks);

}  // namespace rankscope::facts

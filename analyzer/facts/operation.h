// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/store/vocabulary.h"

namespace rankscope::facts {

/// nccl-tests' bus factor: busbw = bytes / time * busFactor (doc/PERFORMANCE.md of nccl-tests).
double busFactor(store::Op op, int ranks);

/// Start-ups in sequence of NCCL's usual algorithm: ring all-reduce 2(P-1), all-gather, reduce-scatter and all-to-all
/// P-1, others 1.
double startupHops(store::Op op, int ranks);

}  // namespace rankscope::facts

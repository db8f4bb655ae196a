// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::analyzer {

/// Why kernels take `ns` more of the step on the new side: more work, slower ranks, or communication beside them. `unknown` where no
/// rank computes longer: then the critical path took another way. `reversed`: `base` is the new side (causes.h).
ChangeCause computeCause(const SideMeans& base, const SideMeans& now, double ns, bool reversed);

}  // namespace rankscope::analyzer

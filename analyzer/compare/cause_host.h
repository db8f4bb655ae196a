// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::analyzer {

/// Why devices wait `ns` longer for their hosts on the new side, or for copies.
ChangeCause hostCause(const SideMeans& base, const SideMeans& now, double ns, bool reversed);

}  // namespace rankscope::analyzer

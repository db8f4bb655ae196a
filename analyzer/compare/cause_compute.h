// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Why `ns` more of the critical path are compute on the new side: the ranks that stand out, and what all ranks have in
/// common; they add up to `ns`. Empty when what ranks compute longer does not explain it.
std::vector<ChangeCause> computeCauses(const SideMeans& base, const SideMeans& now, double ns, bool reversed);

}  // namespace rankscope::compare

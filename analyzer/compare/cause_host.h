// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Why devices wait `ns` longer for their hosts on the new side: one cause, or several that share `ns` as what they
/// cost the ranks they hit hardest.
std::vector<ChangeCause> hostCauses(const SideMeans& base, const SideMeans& now, double ns, bool reversed);

}  // namespace rankscope::compare

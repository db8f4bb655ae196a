// SPDX-License-Identifier: Apache-2.0
// Why the step changed: what is another job, else the finding whose priced cost grew, else what got slower.
#pragma once

#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// A cause for each part of the change that is worth one: `attribution` says how large the parts are, `findings` what
/// their diagnoses cost. Of a faster step the causes are told with the sides changed over, what was lost before and is
/// not any more, and their `ns` is negative. Causes of one kind and the same ranks are one, which names its places.
/// Largest first; one of kind `unknown` where nothing tells. `changeNs` is not zero.
std::vector<ChangeCause> whyChanged(const SideMeans& base, const SideMeans& now,
                                    const std::vector<FindingChange>& findings, double changeNs);

}  // namespace rankscope::compare

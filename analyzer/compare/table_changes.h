// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Means over the ranks that take part, per step; most time first.
std::vector<CollectiveChange> compareCollectives(const SideMeans& base, const SideMeans& now);

/// Means over ranks, per step; largest change first.
std::vector<KernelChange> compareKernels(const SideMeans& base, const SideMeans& now);

}  // namespace rankscope::compare

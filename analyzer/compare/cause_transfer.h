// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Why transfers of one kind ("all_reduce of gradients", trafficName()) hold the step up for `ns` more on the new side:
/// other messages, another way to send them, a slower link, or less compute to hide behind.
ChangeCause transferCause(const SideMeans& base, const SideMeans& now, const std::string& traffic, double ns,
                          bool reversed);

}  // namespace rankscope::compare

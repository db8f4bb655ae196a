// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "gui/charts/series/message_pairs.h"

namespace rankscope::gui {

/// Ranks of the stages of one pipeline, first stage first.
using PipelineChain = std::vector<int32_t>;

/// Chains of ranks in which each sends to its neighbours and gets messages back, perhaps closed to a ring by an
/// interleaved schedule. Two ranks whose messages pass each other exchange data (experts, halos): in a pipeline what
/// comes back answers what was sent. By first rank.
std::vector<PipelineChain> findPipelines(const MessagePairs& pairs);

}  // namespace rankscope::gui

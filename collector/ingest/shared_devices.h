// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "collector/ingest/rank_summary.h"

namespace rankscope::collector {

/// One row of kind shared_device for each rank whose device another rank of its host computes on, too, by where the
/// CUDA driver says that the devices are on the bus. CUDA's ordinals do not tell: CUDA_VISIBLE_DEVICES makes a 0 of
/// each rank's own. `hostOf` gives the host of a summary.
std::vector<store::Loss> sharedDevices(const std::vector<RankSummary>& summaries,
                                       const std::function<int64_t(size_t)>& hostOf);

}  // namespace rankscope::collector

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/charts/series/pipeline_chart.h"

namespace rankscope::gui {

/// A stage and its neighbours; -1 where there is none.
struct StageNeighbours {
    int32_t rank = 0;
    int32_t before = -1, after = -1;
};

/// Passes of a rank by its NVTX ranges that begin in `step`, by start; empty where none of them is called forward or
/// backward.
std::vector<PipelinePass> passesByRanges(store::TraceReader& reader, int32_t rank, TimeRange step);

/// Passes of a rank by its messages: compute kernels in `step` with no message's begin or end between them. One that
/// begins after a message from the stage behind is backward, any other forward; on the last stage the two cannot be
/// told apart.
std::vector<PipelinePass> passesByMessages(store::TraceReader& reader, const StageNeighbours& stage, TimeRange step);

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "collector/store/reader.h"
#include "gui/session/idle_gaps.h"
#include "gui/session/kernel_waits.h"
#include "gui/session/run_info.h"
#include "gui/timeline/rank_tracks.h"

namespace rankscope::gui {

/// Shared by who loads and who watches.
struct LoadControl {
    std::atomic<bool> cancelled{false};
    std::atomic<int64_t> rowsRead{0};
    RowsByRank<KernelWait> waits{readKernelWaits};
    RowsByRank<IdleStretch> idle{readIdleGaps};
};

/// Name of NCCL calls, whose texts are no strings of the file: Track::kMaxName minus the operation.
uint32_t ncclCallName(store::Op op) noexcept;

/// All lanes of one rank, read row by row. Null when cancelled. Throws store::Error where the file is damaged.
RankTracksPtr loadRankTracks(store::TraceReader& reader, const RunInfo& run, int32_t rank, LoadControl& control);

}  // namespace rankscope::gui

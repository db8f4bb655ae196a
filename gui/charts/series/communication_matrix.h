// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/store/reader.h"
#include "gui/charts/series/grid_chart.h"

namespace rankscope::gui {

/// Bytes from each rank (row) to each other (column) over the whole recording, as the operations ask for them, whatever
/// way NCCL takes. Of a message of B bytes (as nccl-tests count) on P ranks each rank owes each other: all-reduce 2B/P,
/// all-gather, reduce-scatter and all-to-all B/P; broadcast: the root B to each, reduce: each B to the root, scatter
/// and gather B/P; where the root is unknown B/P between any two; a send B. A row's sum is then the rank's bytes on the
/// bus.
GridChart communicationMatrix(store::TraceReader& reader);

/// More ranks than this share cells.
inline constexpr size_t kMostMatrixCells = 512;

}  // namespace rankscope::gui

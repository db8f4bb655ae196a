// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "collector/store/reader.h"
#include "gui/charts/series/chart_target.h"
#include "gui/timeline/lane_tree.h"

namespace rankscope::gui {

/// One rank's step, with what `rankscope analyze` found of it.
struct StepRow {
    int32_t rank = 0;
    int32_t step = 0;
    int64_t startNs = 0, durNs = 0;
    bool warmUp = false;
    std::optional<int64_t> computeNs, waitNs;  ///< of the GPU; waiting for other ranks with nothing to compute

    ChartTarget target() const { return {EventTable::step, step, rank, soundStretch(startNs, durNs)}; }
};

struct StepTable {
    std::vector<StepRow> rows;  ///< by rank, then step
    bool cut = false;           ///< there are more steps than kMostRows
    /// Of the job's pipeline, by rank; empty where that is unknown or there is one. A rank's peers are those of its
    /// stage: another has other layers.
    std::map<int32_t, int32_t> stages;

    static constexpr int64_t kMostRows = 4'000'000;

    int32_t stageOf(int32_t rank) const noexcept;
    bool isAnalyzed() const noexcept;
    /// Index of a rank's step, or rows.size().
    size_t find(int32_t rank, int64_t step) const noexcept;
    /// Index of the rank's step at a time, or rows.size().
    size_t at(int32_t rank, int64_t ns) const noexcept;
};

/// `outline` tells the stages.
StepTable readStepTable(store::TraceReader& reader, const RunOutline& outline = {});

}  // namespace rankscope::gui

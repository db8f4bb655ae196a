// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/charts/series/grid_chart.h"
#include "gui/charts/series/step_table.h"

namespace rankscope::gui {

/// What a straggler map shows of each rank's step.
enum class StepMeasure : uint8_t {
    own,  ///< time not spent waiting for other ranks, against the median rank of the same step, as a share: +0.3 is 30
          ///< % more
    compute,   ///< compute time, compared likewise
    waiting,   ///< time the GPU waits for other ranks with nothing to compute: little on the rank that is late, much on
               ///< all others
    duration,  ///< length of the step
};

/// Rank (row) x step (column). Where several share a cell the one farthest from ordinary is shown, so that one slow
/// step among thousands stays visible.
GridChart stragglerMap(const StepTable& steps, StepMeasure measure);

/// Histogram of step times, one row of bins per rank, all ranks together above. Warm-up steps are left out.
GridChart stepHistogram(const StepTable& steps);

inline constexpr size_t kMostMapRows = 512, kMostMapColumns = 1024, kHistogramBins = 48;

}  // namespace rankscope::gui

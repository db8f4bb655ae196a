// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "analyzer/report/step_overview.h"
#include "analyzer/timeline/rank_events.h"

namespace rankscope::analyzer {

/// Draws the step of median length. take() may be called by several threads at once.
class StepOverviewPainter {
  public:
    explicit StepOverviewPainter(const TraceFacts& facts);
    void take(const RankEvents& events);
    /// Without lanes when the run has no step. Call it once, when every rank was taken.
    StepOverview finish() &&;

  private:
    const TraceFacts& m_facts;
    std::mutex m_mutex;  // guards m_overview.lanes
    StepOverview m_overview;
};

}  // namespace rankscope::analyzer

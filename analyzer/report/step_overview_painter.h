// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "analyzer/facts/rank_events.h"
#include "analyzer/report/step_overview.h"

namespace rankscope::report {

/// Draws the step of median length. take() may be called by several threads at once.
class StepOverviewPainter {
  public:
    explicit StepOverviewPainter(const facts::TraceFacts& facts);
    void take(const facts::RankEvents& events);
    /// Without lanes when the run has no step. Call it once, when every rank was taken.
    StepOverview finish() &&;

  private:
    const facts::TraceFacts& m_facts;
    std::mutex m_mutex;  // guards m_overview.lanes
    StepOverview m_overview;
};

}  // namespace rankscope::report

// SPDX-License-Identifier: Apache-2.0
// In which steps which rank stands still: fixed by the seed, no two in a row on one rank, none in the first two steps.
#pragma once

#include <vector>

#include "reference/workloads/scenario.h"

namespace rankscope::reference {

class JitterPlan {
  public:
    /// Empty without the fault. The share of steps is rounded, and at least one step is hit.
    explicit JitterPlan(const Scenario& scenario);

    /// The rank that stands still in a step; -1 = none.
    int rankIn(int step) const { return step >= 0 && step < static_cast<int>(m_ranks.size()) ? m_ranks[step] : -1; }
    /// How many launches of the step come before it.
    int launchIn(int step) const { return m_launches[step]; }

  private:
    std::vector<int> m_ranks;
    std::vector<int> m_launches;
};

}  // namespace rankscope::reference

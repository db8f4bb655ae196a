// SPDX-License-Identifier: Apache-2.0
// Spreads a number of occasions evenly over the launches of a step. How many launches a step has is seen in the first
// one, which gets none.
#pragma once

#include <cstdint>

namespace rankscope::reference {

class LaunchSpread {
  public:
    explicit LaunchSpread(int occasions) : m_occasions(occasions) {}

    void beginStep() {
        m_launchesPerStep = m_inStep ? m_launch : 0;  // what came before the first step is not one
        m_inStep = true;
        m_launch = 0;
    }

    /// Occasions that fall before the next launch; counts that launch.
    int beforeLaunch() {
        const int64_t before = passed(m_launch++);
        return static_cast<int>(passed(m_launch) - before);
    }

  private:
    /// Occasions before launch `launch`: the i-th of n stands in the middle of the i-th part of n.
    int64_t passed(int64_t launch) const {
        if (m_launchesPerStep == 0) return 0;
        if (launch >= m_launchesPerStep) return m_occasions;
        return (2 * launch * m_occasions + m_launchesPerStep) / (2 * m_launchesPerStep);
    }

    int64_t m_occasions;
    int64_t m_launchesPerStep = 0;
    int64_t m_launch = 0;
    bool m_inStep = false;
};

}  // namespace rankscope::reference

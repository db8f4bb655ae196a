// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace rankscope::exports {

/// Puts events that come by start on as few lanes as they need: on a lane events follow or enclose each other, as
/// viewers expect of a thread.
class TrackLanes {
  public:
    /// Lane, from 0, of an event.
    size_t place(int64_t startNs, int64_t endNs) {
        for (size_t lane = 0; lane < m_open.size(); ++lane) {
            std::vector<int64_t>& open = m_open[lane];
            while (!open.empty() && open.back() <= startNs) open.pop_back();
            if (!open.empty() && open.back() < endNs) continue;
            open.push_back(endNs);
            return lane;
        }
        m_open.push_back({endNs});
        return m_open.size() - 1;
    }

  private:
    std::vector<std::vector<int64_t>> m_open;  // ends of the events that enclose the present time, outermost first
};

}  // namespace rankscope::exports

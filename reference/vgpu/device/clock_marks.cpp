// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/device/clock_marks.h"

#include <algorithm>
#include <iterator>

namespace rankscope::vgpu {

void ClockMarks::add(uint64_t ticks, int64_t virtualNs) {
    if (!m_marks.empty()) {
        // Another thread may have read the clock earlier and come here later.
        ticks = std::max(ticks, m_marks.back().ticks);
        virtualNs = std::max(virtualNs, m_marks.back().ns);
    }
    m_marks.push_back({ticks, virtualNs});
}

int64_t ClockMarks::virtualAt(uint64_t ticks) const {
    if (m_marks.empty()) return 0;
    const auto next = std::ranges::upper_bound(m_marks, ticks, {}, &Mark::ticks);
    if (next == m_marks.begin()) return next->ns;
    const Mark& before = *std::prev(next);
    if (next == m_marks.end()) return before.ns;
    const double share = static_cast<double>(ticks - before.ticks) / static_cast<double>(next->ticks - before.ticks);
    return before.ns + static_cast<int64_t>(share * static_cast<double>(next->ns - before.ns));
}

}  // namespace rankscope::vgpu

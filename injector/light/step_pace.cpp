// SPDX-License-Identifier: Apache-2.0
#include "injector/light/step_pace.h"

namespace rankscope::injector {

int64_t StepPace::begin(uint32_t thread, uint32_t depth, int64_t ns) noexcept {
    if (!m_isKnown || (thread == m_thread && depth < m_depth)) {
        *this = {};
        m_isKnown = true;
        m_thread = thread;
        m_depth = depth;
        m_beginNs = ns;
        return 0;
    }
    if (thread != m_thread || depth != m_depth) return -1;
    const int64_t tookNs = ns - m_beginNs;
    m_beginNs = ns;
    const size_t known = m_count < kLast ? m_count : kLast;
    int64_t sorted[kLast];
    for (size_t i = 0; i < known; ++i) {
        size_t at = i;
        for (; at > 0 && sorted[at - 1] > m_lastNs[i]; --at) sorted[at] = sorted[at - 1];
        sorted[at] = m_lastNs[i];
    }
    m_medianNs = known < kFewest ? 0 : sorted[known / 2];
    m_lastNs[m_count++ % kLast] = tookNs;
    return tookNs;
}

}  // namespace rankscope::injector

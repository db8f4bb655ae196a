// SPDX-License-Identifier: Apache-2.0
#include "injector/light/call_sampler.h"

namespace rankscope::injector {

void CallSampler::stepBegins(int64_t ns) noexcept {
    m_steps[m_end++ % kSteps] = {ns};
}

/// Null: before the first step.
CallSampler::Step* CallSampler::stepAt(int64_t ns) noexcept {
    if (m_end == 0) return nullptr;
    const uint64_t oldest = m_end > kSteps ? m_end - kSteps : 0;
    if (m_at < oldest) m_at = oldest;
    while (m_at + 1 < m_end && m_steps[(m_at + 1) % kSteps].startNs <= ns) ++m_at;
    while (m_at > oldest && m_steps[m_at % kSteps].startNs > ns) --m_at;
    Step& step = m_steps[m_at % kSteps];
    return step.startNs <= ns || oldest > 0 ? &step : nullptr;
}

/// The last step that was kept tells what the next ones will take.
void CallSampler::adapt() noexcept {
    const size_t bytes = m_steps[m_lastKept % kSteps].bytes;
    if (m_end > m_lastKept + kSteps || bytes == 0) return;
    while (bytes > kBytesPerStep << m_strideBits && uint64_t{1} << m_strideBits < kLongestStride) ++m_strideBits;
    // Not back for a little: else the stride goes to and fro where a step takes about as much as it may.
    while (m_strideBits > 0 && bytes < kBytesPerStep << m_strideBits >> 2) --m_strideBits;
}

bool CallSampler::keeps(int64_t startNs) noexcept {
    Step* const step = stepAt(startNs);
    if (step == nullptr) return true;
    if (!step->isDecided) {
        adapt();
        step->isDecided = true;
        step->isKept = m_at % (uint64_t{1} << m_strideBits) == 0;
        if (step->isKept) m_lastKept = m_at;
    }
    if (step->bytes > kMostOfStep) step->isKept = false;
    return step->isKept;
}

void CallSampler::noteBytes(int64_t startNs, size_t bytes) noexcept {
    if (Step* const step = stepAt(startNs)) step->bytes += bytes;
}

}  // namespace rankscope::injector

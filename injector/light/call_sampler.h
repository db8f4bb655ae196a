// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::injector {

/// Chooses the steps whose calls are kept when their records are older than the ring: all of them as long as the calls
/// of a step take no more than kBytesPerStep, else those of each second, fourth… step, so that a step takes no more on
/// average. Which ones goes by the steps' number in the process and powers of two: processes of a job that call the
/// same keep the same steps, and of those that call less the others' are among what they keep. All zero at first;
/// consumer only.
class CallSampler {
  public:
    /// With marks, blocks' heads and what tells of the calls that were left out a step is under a kilobyte.
    static constexpr size_t kBytesPerStep = 850;
    /// More than this of one step is not kept, and then the step counts as one that was left out.
    static constexpr size_t kMostOfStep = 64u << 10;

    constexpr CallSampler() = default;

    void stepBegins(int64_t ns) noexcept;
    /// Whether a call that began then is kept. What began before the first step is.
    bool keeps(int64_t startNs) noexcept;
    /// What a kept call took.
    void noteBytes(int64_t startNs, size_t bytes) noexcept;

    void clear() noexcept { m_end = m_at = m_lastKept = m_strideBits = 0; }

  private:
    static constexpr uint64_t kSteps = 4096;  // that calls may still be of
    static constexpr uint64_t kLongestStride = 1u << 20;

    struct Step {
        int64_t startNs = 0;
        size_t bytes = 0;
        bool isDecided = false;
        bool isKept = false;
    };

    Step* stepAt(int64_t ns) noexcept;
    void adapt() noexcept;

    uint64_t m_end = 0;  // steps so far: the number of the next one
    uint64_t m_at = 0;   // where the last one that was asked for is
    uint64_t m_lastKept = 0;
    uint64_t m_strideBits = 0;
    Step m_steps[kSteps] = {};
};

}  // namespace rankscope::injector

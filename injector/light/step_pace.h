// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::injector {

/// How long the steps of this process take, from begin to begin of the outermost ranges that are called steps. All zero
/// at first; consumer only.
class StepPace {
  public:
    constexpr StepPace() = default;

    /// A step's range begins in a thread, inside `depth` others. Returns how long the step before it took, in
    /// nanoseconds; 0: it is the first; -1: it lies in another step.
    int64_t begin(uint32_t thread, uint32_t depth, int64_t ns) noexcept;

    /// The median of the last steps, without the one that begin() told last; 0 before there are kFewest.
    int64_t medianNs() const noexcept { return m_medianNs; }

  private:
    static constexpr size_t kLast = 32;
    static constexpr size_t kFewest = 8;  // the first ones of a job take long

    int64_t m_lastNs[kLast] = {};
    size_t m_count = 0;
    int64_t m_medianNs = 0;
    int64_t m_beginNs = 0;
    uint32_t m_thread = 0;
    uint32_t m_depth = 0;
    bool m_isKnown = false;
};

}  // namespace rankscope::injector

// SPDX-License-Identifier: Apache-2.0
// What a process holds of its device's memory by CUDA's allocation calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::facts {

/// Adds up allocations of a rank in the order of time. Frameworks keep what they have freed: with a caching allocator
/// this is what it reserves. Contexts and libraries hold more, by other ways.
class HeldMemory {
  public:
    /// `call`: its name, cudaMalloc… Returns true where it changes what is held; calls for memory of the host do not.
    bool take(std::string_view call, bool frees, std::optional<int64_t> bytes);
    int64_t bytes() const { return m_bytes; }
    int64_t peak() const { return m_peak; }

  private:
    int64_t m_bytes = 0, m_peak = 0;
};

/// The most that a rank is known to have held, bytes; 0: not known.
struct MemoryPeaks {
    int64_t held = 0;  // by its calls (HeldMemory)
    int64_t sampled =
        0;  // by samples of an allocator that an imported trace holds: "memory reserved on device 0 [bytes]"
};

MemoryPeaks readMemoryPeaks(store::TraceReader& trace, int rank);

}  // namespace rankscope::facts

// SPDX-License-Identifier: Apache-2.0
// What a process holds of its device's memory by CUDA's allocation calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

}  // namespace rankscope::facts

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rankscope::injector {

/// 64-bit id of a text; the same text has the same id in every process. Never 0, except for the empty text. All bits
/// are mixed: the low 32 alone name a kernel.
uint64_t stringId(const char* text, size_t bytes) noexcept;

/// Remembers which ids have their text in the capture file already. Lock-free; when it is full every text counts as
/// new, which costs space and nothing else.
class StringTable {
  public:
    constexpr StringTable() = default;

    bool contains(uint64_t id) const noexcept;
    void add(uint64_t id) noexcept;
    void clear() noexcept;

  private:
    static constexpr size_t kSlots = 1u << 16;
    static constexpr size_t kProbes = 16;
    std::atomic<uint64_t> m_slots[kSlots] = {};
};

}  // namespace rankscope::injector

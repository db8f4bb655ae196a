// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::injector {

/// Copies of the names of kernels by a number: CUPTI's text lasts as long as the code does. Bounded: names that do not
/// fit have no number. Static memory, all zero at first; one thread at a time.
class KernelNames {
  public:
    static constexpr uint32_t kNames = 8192;  ///< a large model's training has some hundreds

    constexpr KernelNames() = default;
    KernelNames(const KernelNames&) = delete;
    KernelNames& operator=(const KernelNames&) = delete;

    /// 0: there is no room for it.
    uint32_t numberOf(const char* name) noexcept;

    // Of a number above 0.
    const char* text(uint32_t number) const noexcept { return m_texts + m_names[number].at; }
    size_t bytes(uint32_t number) const noexcept { return m_names[number].bytes; }
    uint64_t id(uint32_t number) const noexcept { return m_names[number].id; }
    bool isNccl(uint32_t number) const noexcept { return m_names[number].isNccl; }

    void clear() noexcept;

  private:
    static constexpr uint32_t kPlaces = 2 * kNames;
    static constexpr uint32_t kTextBytes = 4u << 20;  // 500 each; those of templates have up to some thousand
    static constexpr uint32_t kRecent = 1024;

    struct Name {
        uint64_t id = 0;
        uint32_t at = 0;
        uint32_t bytes = 0;
        bool isNccl = false;
    };

    uint32_t m_count = 0;
    uint32_t m_textBytes = 0;
    uint16_t m_places[kPlaces] = {};  // numbers by id
    struct {
        const char* name = nullptr;
        uint32_t number = 0;
    } m_recent[kRecent];  // by the text's address, which may have another text by now
    Name m_names[kNames + 1] = {};
    char m_texts[kTextBytes] = {};
};

}  // namespace rankscope::injector

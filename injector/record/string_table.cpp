// SPDX-License-Identifier: Apache-2.0
#include "injector/record/string_table.h"

#include <cstring>

namespace rankscope::injector {
namespace {

uint64_t load(const char* text, size_t bytes) noexcept {
    uint64_t word = 0;
    std::memcpy(&word, text, bytes);
    return word;
}

/// Multiply to 128 bits and fold: the mixing step of wyhash (public domain).
uint64_t fold(uint64_t a, uint64_t b) noexcept {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t kA = 0xa0761d6478bd642full;
constexpr uint64_t kB = 0xe7037ed1a0b428dbull;

}  // namespace

uint64_t stringId(const char* text, size_t bytes) noexcept {
    if (bytes == 0) return 0;
    uint64_t state = kA ^ bytes;
    size_t left = bytes;
    for (; left > 8; left -= 8, text += 8) state = fold(state ^ load(text, 8), kB);
    const uint64_t id = fold(fold(state ^ load(text, left), kB), kA ^ bytes);
    return id == 0 ? 1 : id;
}

bool StringTable::contains(uint64_t id) const noexcept {
    for (size_t i = 0; i < kProbes; ++i) {
        const uint64_t seen = m_slots[(id + i) % kSlots].load(std::memory_order_relaxed);
        if (seen == id) return true;
        if (seen == 0) return false;
    }
    return false;
}

void StringTable::add(uint64_t id) noexcept {
    for (size_t i = 0; i < kProbes; ++i) {
        auto& slot = m_slots[(id + i) % kSlots];
        uint64_t expected = 0;
        if (slot.compare_exchange_strong(expected, id, std::memory_order_relaxed) || expected == id) return;
    }
}

void StringTable::clear() noexcept {
    for (auto& slot : m_slots) slot.store(0, std::memory_order_relaxed);
}

}  // namespace rankscope::injector

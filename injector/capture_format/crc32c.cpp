// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/crc32c.h"

#include <array>
#include <atomic>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rankscope::capture {
namespace {

constexpr std::array<uint32_t, 256> makeTable() {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? (value >> 1) ^ 0x82f63b78u : value >> 1;
        table[i] = value;
    }
    return table;
}
constexpr auto kTable = makeTable();

uint32_t portable(const uint8_t* data, size_t bytes, uint32_t crc) noexcept {
    for (size_t i = 0; i < bytes; ++i) crc = kTable[(crc ^ data[i]) & 0xff] ^ (crc >> 8);
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t hardware(const uint8_t* data, size_t bytes, uint32_t crc) noexcept {
    uint64_t wide = crc;
    while (bytes >= 8) {
        uint64_t word;
        std::memcpy(&word, data, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
        data += 8;
        bytes -= 8;
    }
    crc = static_cast<uint32_t>(wide);
    while (bytes-- > 0) crc = __builtin_ia32_crc32qi(crc, *data++);
    return crc;
}

// Asked when first needed, and not by __builtin_cpu_supports: what that asks before main, in each process that loads
// this, a virtual machine's host answers, at 50 us for a process that does nothing else of ours.
bool hasInstruction() noexcept {
    static constinit std::atomic<int> known{-1};
    int has = known.load(std::memory_order_relaxed);
    if (has >= 0) return has != 0;
    unsigned a = 0, b = 0, c = 0, d = 0;
    has = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_2) != 0;
    known.store(has, std::memory_order_relaxed);
    return has != 0;
}
#endif

}  // namespace

uint32_t crc32c(const void* data, size_t bytes, uint32_t crc) noexcept {
    const auto* octets = static_cast<const uint8_t*>(data);
#if defined(__x86_64__)
    if (hasInstruction()) return ~hardware(octets, bytes, ~crc);
#endif
    return ~portable(octets, bytes, ~crc);
}

}  // namespace rankscope::capture

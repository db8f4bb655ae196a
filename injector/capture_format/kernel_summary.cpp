// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/kernel_summary.h"

namespace rankscope::capture {
namespace {

uint8_t* put(uint8_t* into, uint64_t value) noexcept {
    for (; value >= 0x80; value >>= 7) *into++ = static_cast<uint8_t>(value | 0x80);
    *into++ = static_cast<uint8_t>(value);
    return into;
}

uint64_t zigzag(int64_t value) noexcept {
    return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}

const uint8_t* take(const uint8_t* at, const uint8_t* end, uint64_t& value) noexcept {
    value = 0;
    for (int shift = 0; shift < 64 && at != end; shift += 7) {
        const uint8_t byte = *at++;
        value |= uint64_t{byte & 0x7fu} << shift;
        if ((byte & 0x80) == 0) return at;
    }
    return nullptr;
}

/// Sums of what a damaged file says may not fit.
constexpr uint64_t kMostNs = uint64_t{1} << 61;

}  // namespace

size_t putKernelItem(uint8_t* into, uint32_t previous, const KernelItem& item) noexcept {
    uint8_t* at = put(into, item.number - previous);
    at = put(at, item.count);
    at = put(at, static_cast<uint64_t>(item.medianNs));
    if (item.count == 1) return static_cast<size_t>(at - into);
    at = put(at, zigzag(static_cast<int64_t>(static_cast<uint64_t>(item.totalNs) -
                                             item.count * static_cast<uint64_t>(item.medianNs))));
    at = put(at, static_cast<uint64_t>(item.medianNs - item.tenthNs));
    at = put(at, static_cast<uint64_t>(item.ninthNs - item.medianNs));
    at = put(at, static_cast<uint64_t>(item.longestNs - item.ninthNs));
    return static_cast<size_t>(at - into);
}

const uint8_t* takeKernelItem(const uint8_t* at, const uint8_t* end, uint32_t previous, KernelItem& item) noexcept {
    uint64_t step = 0, count = 0, median = 0;
    if ((at = take(at, end, step)) == nullptr || (at = take(at, end, count)) == nullptr ||
        (at = take(at, end, median)) == nullptr)
        return nullptr;
    if (step == 0 || step > UINT32_MAX - previous || count == 0 || count > UINT32_MAX || median > kMostNs)
        return nullptr;
    item.number = previous + static_cast<uint32_t>(step);
    item.count = static_cast<uint32_t>(count);
    item.medianNs = item.totalNs = item.tenthNs = item.ninthNs = item.longestNs = static_cast<int64_t>(median);
    if (count == 1) return at;
    uint64_t beyond = 0, below = 0, above = 0, longest = 0;
    if ((at = take(at, end, beyond)) == nullptr || (at = take(at, end, below)) == nullptr ||
        (at = take(at, end, above)) == nullptr || (at = take(at, end, longest)) == nullptr)
        return nullptr;
    if (below > median || above > kMostNs || longest > kMostNs) return nullptr;
    const auto more = static_cast<int64_t>(beyond >> 1 ^ (0 - (beyond & 1)));
    int64_t medians = 0;
    if (__builtin_mul_overflow(item.medianNs, static_cast<int64_t>(count), &medians) ||
        __builtin_add_overflow(medians, more, &item.totalNs) || item.totalNs < 0)
        return nullptr;
    item.tenthNs -= static_cast<int64_t>(below);
    item.ninthNs += static_cast<int64_t>(above);
    item.longestNs = item.ninthNs + static_cast<int64_t>(longest);
    return at;
}

}  // namespace rankscope::capture

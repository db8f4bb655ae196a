// SPDX-License-Identifier: Apache-2.0
// The items of a KernelSummaryRecord. FORMAT.md tells how the bytes are laid out; kernel_summary.cpp is both sides.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::capture {

/// Kernels of one key in one summary. Durations in ns; quantiles are those of the sorted durations, the median of an
/// even number the mean of the two in the middle, rounded down.
struct KernelItem {
    uint32_t number = 0;  ///< KernelKeyRecord::number
    uint32_t count = 0;
    int64_t totalNs = 0;
    int64_t tenthNs = 0;  ///< a tenth of them took no longer
    int64_t medianNs = 0;
    int64_t ninthNs = 0;  ///< nine tenths of them took no longer
    int64_t longestNs = 0;
};

/// At most what one item takes: seven numbers of LEB128.
inline constexpr size_t kMostKernelItemBytes = 7 * 10;

/// Writes an item behind one of number `previous` (0: the first), which is smaller. Returns the bytes it took.
size_t putKernelItem(uint8_t* into, uint32_t previous, const KernelItem& item) noexcept;

/// Reads an item that begins at `at`; null when the bytes end inside it or contradict themselves, else behind it.
const uint8_t* takeKernelItem(const uint8_t* at, const uint8_t* end, uint32_t previous, KernelItem& item) noexcept;

}  // namespace rankscope::capture

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/freed_memory.h"

#include <malloc.h>

namespace rankscope::cli {

void keepFreedMemory(unsigned heaps) {
    constexpr int kLarge = 1 << 30, kMost = 32 << 20;  // bytes; older versions of glibc refuse more than kMost
    constexpr int kNever = -1;                         // mallopt's word for it
    if (mallopt(M_MMAP_THRESHOLD, kLarge) == 0) mallopt(M_MMAP_THRESHOLD, kMost);
    mallopt(M_TRIM_THRESHOLD, kNever);
    mallopt(M_ARENA_MAX, static_cast<int>(heaps));
}

}  // namespace rankscope::cli

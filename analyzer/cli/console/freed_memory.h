// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::cli {

enum class Heaps : uint8_t {
    oneForAll,  // what one thread has freed, any thread gets; they wait for each other to allocate
    asMany,     // as the C library chooses: about one for each thread
};

/// Keeps what this process frees for what it needs next, for good: graphs of jobs are made and freed again and again.
/// Otherwise the kernel takes the pages back and clears them anew, which is a third of the time of `recommend` and a
/// sixth of that of `analyze` (64 and 256 ranks, two cores). Call it before threads are started.
void keepFreedMemory(Heaps heaps);

}  // namespace rankscope::cli

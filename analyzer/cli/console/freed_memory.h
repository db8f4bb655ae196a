// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::cli {

enum class Heaps : uint8_t {
    oneForAll,   // what a thread has freed, any other may have
    oneForEach,  // threads that read ranks side by side do not wait for each other
};

/// Keeps what this process frees for what it needs next: graphs of jobs are made and freed again and again. Given back
/// to the kernel each time, clean pages take a third of the time of `recommend` and a sixth of that of `analyze`.
void keepFreedMemory(Heaps heaps);

}  // namespace rankscope::cli

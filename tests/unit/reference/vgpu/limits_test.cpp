// SPDX-License-Identifier: Apache-2.0
// What a virtual job has no place for is refused with a message.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "reference/vgpu/engine/arena.h"

namespace rankscope::vgpu {
namespace {

TEST(VirtualJob, OneProcessTooManyIsTold) {
    const std::string job = "test-limits-" + std::to_string(getpid());
    uint32_t index = 0;
    Arena* arena = attachArena(job.c_str(), 1'000, index);
    EXPECT_EQ(index, 0u);
    arena->processCount = kMaxProcesses;
    EXPECT_DEATH(
        {
            uint32_t more = 0;
            attachArena(job.c_str(), 1'000, more);
        },
        "holds at most " + std::to_string(kMaxProcesses) + " processes, and this is one more");
    arena->processCount = 1;
    detachArena(arena, index);
}

}  // namespace
}  // namespace rankscope::vgpu

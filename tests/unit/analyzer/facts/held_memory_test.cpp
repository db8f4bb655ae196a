// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/held_memory.h"

#include <gtest/gtest.h>

namespace rankscope::facts {
namespace {

TEST(HeldMemory, IsWhatWasAllocatedAndNotFreed) {
    HeldMemory held;
    EXPECT_TRUE(held.take("cudaMalloc", false, 1000));
    EXPECT_TRUE(held.take("cudaMallocAsync", false, 500));
    EXPECT_TRUE(held.take("cudaFree", true, 1000));
    EXPECT_TRUE(held.take("cudaMalloc", false, 200));
    EXPECT_EQ(held.bytes(), 700);
    EXPECT_EQ(held.peak(), 1500);
}

TEST(HeldMemory, MemoryOfTheHostAndWhatIsUnknownDoNotCount) {
    HeldMemory held;
    EXPECT_FALSE(held.take("cudaMallocHost", false, 1000));
    EXPECT_FALSE(held.take("cudaHostAlloc", false, 1000));
    EXPECT_FALSE(held.take("cudaFree", true, std::nullopt));
    EXPECT_EQ(held.peak(), 0);
}

TEST(HeldMemory, SumsOfADamagedFileStayNumbers) {
    HeldMemory held;
    for (int i = 0; i < 100'000; ++i) held.take("cudaMalloc", false, INT64_MAX);
    EXPECT_GT(held.bytes(), 0);
    held.take("cudaFree", true, INT64_MAX);
    EXPECT_GT(held.bytes(), 0);
}

}  // namespace
}  // namespace rankscope::facts

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/memory.h"

#include <gtest/gtest.h>

namespace rankscope::report {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(Memory, TheRankWithLeastLeftIsNamed) {
    MemoryRow first, second;
    second.rank = 1;
    first.heldBytes = 60 * kGiB;
    first.deviceBytes = 80 * kGiB;
    second.heldBytes = 50 * kGiB;
    second.usedBytes = 52 * kGiB;
    second.deviceBytes = 64 * kGiB;
    EXPECT_EQ(marginOf(first), 20 * kGiB);
    EXPECT_EQ(marginOf(second), 12 * kGiB) << "what all processes use is more than what the rank holds";
    EXPECT_EQ(memoryText({first, second}),
              "memory: rank 1 comes nearest to its device's limit, 52 GiB of 64 GiB by NVML, 12 GiB left");
}

TEST(Memory, OfAnUnknownDeviceThePeakAloneIsTold) {
    MemoryRow row;
    row.sampledBytes = 3 * kGiB;
    EXPECT_FALSE(marginOf(row));
    EXPECT_EQ(memoryText({row}), "memory: rank 0 holds most, 3 GiB by the trace; how much the device has is unknown");
    MemoryRow other = row;
    other.rank = 1;
    EXPECT_EQ(memoryText({row, other}),
              "memory: ranks 0-1 hold most, 3 GiB each by the trace; how much the device has is unknown");
    EXPECT_EQ(memoryText({}), "");
}

TEST(Memory, ADeviceThatLendsMemoryOfTheHostHasNoneLeft) {
    MemoryRow row;
    row.heldBytes = 90 * kGiB;
    row.deviceBytes = 80 * kGiB;
    EXPECT_EQ(memoryText({row}),
              "memory: rank 0 comes nearest to its device's limit, 90 GiB of 80 GiB by cudaMalloc, 0 B left");
}

}  // namespace
}  // namespace rankscope::report

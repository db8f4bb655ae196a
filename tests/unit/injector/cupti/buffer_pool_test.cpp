// SPDX-License-Identifier: Apache-2.0
#include "injector/cupti/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using rankscope::injector::cupti::BufferPool;

// CUPTI is told that it gets zeroed buffers: what an older one held would be taken for records.
TEST(BufferPool, GivesOutZerosAlsoWhatWasUsedBefore) {
    static constinit BufferPool pool;
    uint8_t* const buffer = pool.take();
    ASSERT_NE(buffer, nullptr);
    std::memset(buffer, 0xAB, BufferPool::kBufferBytes);
    pool.giveBack(buffer);
    uint8_t* const again = pool.take();
    ASSERT_EQ(again, buffer);
    EXPECT_TRUE(std::all_of(again, again + BufferPool::kBufferBytes, [](uint8_t byte) { return byte == 0; }));
    pool.giveBack(again);
}

// SPDX-License-Identifier: Apache-2.0
#include "injector/record/ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

using namespace rankscope;
using injector::Ring;

namespace {

constexpr uint32_t kCells = 512;

struct Memory {
    capture::RingHeader header{};
    std::vector<uint8_t> cells = std::vector<uint8_t>(kCells * capture::kCellBytes);
    Ring ring() {
        Ring bound;
        bound.bind(&header, cells.data(), kCells);
        bound.adopt(1, 2);
        return bound;
    }
};

capture::ApiCallRecord call(uint32_t seq) {
    capture::ApiCallRecord record{};
    record.head = {capture::RecordType::apiCall, 1, 0};
    record.seq = seq;
    return record;
}

uint32_t seqAt(const Ring& ring, uint64_t position) {
    capture::ApiCallRecord record;
    std::memcpy(&record, ring.cellAt(position), sizeof record);
    return record.seq;
}

}  // namespace

TEST(Ring, IsFullAfterItsCellsAndHasRoomAgainAfterADrain) {
    Memory memory;
    Ring ring = memory.ring();
    for (uint32_t i = 0; i < kCells; ++i) {
        ASSERT_TRUE(ring.hasRoom(1));
        ring.push(std::make_unique<capture::ApiCallRecord>(call(i)).get(), 1);
    }
    EXPECT_FALSE(ring.hasRoom(1));
    ring.release(2);
    EXPECT_TRUE(ring.hasRoom(2));
    EXPECT_FALSE(ring.hasRoom(3));
}

TEST(Ring, ARecordOfSeveralCellsWrapsAroundTheEnd) {
    Memory memory;
    Ring ring = memory.ring();
    const auto single = call(0);
    for (uint32_t i = 0; i < kCells - 1; ++i) ring.push(&single, 1);
    ring.release(kCells - 1);
    ASSERT_TRUE(ring.hasRoom(2));
    const capture::ApiCallRecord pair[2] = {call(11), call(12)};
    ring.push(pair, 2);
    EXPECT_EQ(seqAt(ring, kCells - 1), 11u);
    EXPECT_EQ(seqAt(ring, kCells), 12u);
    EXPECT_EQ(ring.untilWrap(kCells - 1), 1u);
}

TEST(Ring, LossesAreCountedWithTheirFirstAndLastTime) {
    Memory memory;
    Ring ring = memory.ring();
    ring.countLost(100);
    ring.countLost(300);
    EXPECT_EQ(ring.lostRecords(), 2u);
    EXPECT_EQ(memory.header.lostFirstNs, 100);
    EXPECT_EQ(memory.header.lostLastNs, 300);
}

TEST(Ring, AsksForADrainOnceItIsHalfFull) {
    Memory memory;
    Ring ring = memory.ring();
    const auto record = call(0);
    int asked = 0;
    for (uint32_t i = 0; i < kCells / 2 + 4; ++i) {
        ring.push(&record, 1);
        asked += ring.needsDrain() ? 1 : 0;
    }
    EXPECT_EQ(asked, 1);
}

TEST(Ring, OneThreadPushesWhileAnotherDrainsAndEveryRecordIsSeenOnceInOrder) {
    Memory memory;
    Ring ring = memory.ring();
    constexpr uint32_t kRecords = 200000;
    std::vector<uint32_t> seen;
    seen.reserve(kRecords);
    std::thread consumer([&] {
        Ring view;
        view.bind(&memory.header, memory.cells.data(), kCells);
        while (seen.size() < kRecords) {
            const uint64_t head = view.committedHead();
            for (uint64_t position = view.tail(); position < head; ++position) seen.push_back(seqAt(view, position));
            view.release(head);
            std::this_thread::yield();
        }
    });
    for (uint32_t i = 0; i < kRecords; ++i) {
        while (!ring.hasRoom(1)) std::this_thread::yield();
        const auto record = call(i);
        ring.push(&record, 1);
    }
    consumer.join();
    for (uint32_t i = 0; i < kRecords; ++i) ASSERT_EQ(seen[i], i);
}

// SPDX-License-Identifier: Apache-2.0
#include "injector/record/ring.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/time.h>

#include <atomic>
#include <csignal>
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
    const capture::ApiCallRecord three[3] = {call(11), call(12), call(13)};
    for (uint32_t i = 0; i < kCells; ++i) ASSERT_TRUE(ring.push(three, 1));
    EXPECT_FALSE(ring.push(three, 1));
    ring.release(2);
    EXPECT_FALSE(ring.push(three, 3));
    EXPECT_TRUE(ring.push(three, 2));
    EXPECT_FALSE(ring.push(three, 1));
    EXPECT_EQ(ring.committedHead(), kCells + 2);
}

TEST(Ring, ARecordOfSeveralCellsWrapsAroundTheEnd) {
    Memory memory;
    Ring ring = memory.ring();
    const auto single = call(0);
    for (uint32_t i = 0; i < kCells - 1; ++i) ring.push(&single, 1);
    ring.release(kCells - 1);
    const capture::ApiCallRecord pair[2] = {call(11), call(12)};
    ASSERT_TRUE(ring.push(pair, 2));
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
        const auto record = call(i);
        while (!ring.push(&record, 1)) std::this_thread::yield();
    }
    consumer.join();
    for (uint32_t i = 0; i < kRecords; ++i) ASSERT_EQ(seen[i], i);
}

namespace {

// Of the storm: what the handler and the thread that it interrupts push to, and how often either was refused.
Ring* g_stormRing = nullptr;
std::atomic<uint32_t> g_handled{0}, g_refused{0};

/// Two cells that belong together: a record that another one has written over is told by it.
void pushPair(uint32_t number, std::atomic<uint32_t>& refused) {
    capture::ApiCallRecord pair[2] = {call(number), call(number)};
    pair[0].head.cells = 2;
    pair[0].startNs = pair[1].startNs = number * 7919u;  // modulo 2^32
    pair[0].endNs = pair[1].endNs = ~pair[0].startNs;
    if (g_stormRing->push(pair, 2)) return;
    refused.fetch_add(1);
    g_stormRing->countLost(1);
}

constexpr uint32_t kOfHandler = 1u << 31;

void onStorm(int) {
    for (int i = 0; i < 3; ++i) pushPair(kOfHandler | g_handled.fetch_add(1), g_refused);
}

}  // namespace

// A handler that came between the choice of a place and the record in it would have its own record there, or that of
// the other end up in its place.
TEST(Ring, AHandlerThatPushesInTheMiddleOfAPushBreaksNoRecordAndWhatIsRefusedIsCounted) {
    Memory memory;
    Ring ring = memory.ring();
    g_stormRing = &ring;
    g_handled = g_refused = 0;
    struct sigaction storm {};
    storm.sa_handler = onStorm;
    storm.sa_flags = SA_RESTART;
    struct sigaction before {};
    ASSERT_EQ(sigaction(SIGALRM, &storm, &before), 0);
    std::atomic<bool> isOver{false};
    uint64_t seen = 0, broken = 0, outOfOrder = 0;
    std::thread consumer([&] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        Ring view;
        view.bind(&memory.header, memory.cells.data(), kCells);
        uint32_t next[2] = {0, 0};
        for (bool isLast = false; !isLast;) {
            isLast = isOver.load();
            const uint64_t head = view.committedHead();
            for (uint64_t position = view.tail(); position < head; position += 2, ++seen) {
                capture::ApiCallRecord pair[2];
                for (int i = 0; i < 2; ++i) std::memcpy(&pair[i], view.cellAt(position + i), sizeof pair[i]);
                const int64_t startNs = int64_t{pair[0].seq} * 7919 & 0xffffffff;
                if (pair[0].head.cells != 2 || pair[1].seq != pair[0].seq || pair[0].startNs != startNs ||
                    pair[1].startNs != startNs || pair[1].endNs != ~startNs)
                    ++broken;
                uint32_t& expected = next[pair[0].seq / kOfHandler];
                if (pair[0].seq % kOfHandler < expected) ++outOfOrder;
                expected = pair[0].seq % kOfHandler + 1;
            }
            view.release(head);
            std::this_thread::yield();
        }
    });
    // A timer's, which comes at any instruction; all other threads block it.
    constexpr suseconds_t kApartUs = 20;
    const itimerval often{{0, kApartUs}, {0, kApartUs}}, never{};
    ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
    uint32_t pushed = 0;
    while (g_handled < 6000) pushPair(pushed++ % kOfHandler, g_refused);
    setitimer(ITIMER_REAL, &never, nullptr);
    isOver = true;
    consumer.join();
    sigaction(SIGALRM, &before, nullptr);
    const uint64_t left = (ring.committedHead() - ring.tail()) / 2;
    EXPECT_EQ(broken, 0u);
    EXPECT_EQ(outOfOrder, 0u);
    EXPECT_EQ(seen + left + g_refused, uint64_t{pushed} + g_handled);
    EXPECT_EQ(ring.lostRecords(), g_refused.load());
}

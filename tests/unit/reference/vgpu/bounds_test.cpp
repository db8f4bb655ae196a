// SPDX-License-Identifier: Apache-2.0
// Who bounds what is final while threads are blocked in calls of libc.
#include "tests/unit/reference/vgpu/engine_fixture.h"

namespace rankscope::vgpu {
namespace {

class BoundsTest : public EngineTest {
  protected:
    BoundsTest() : rank(addRank()), stream(addStream(rank)), thread(arena.threads[rank]) {
        submit(stream, OpKind::kernel, 0, 50'000);
    }
    bool kernelIsDone() {
        engine.advance(rank);
        return arena.streams[stream].finishedSeq.load() == 1;
    }
    uint32_t rank, stream;
    HostThread& thread;
};

TEST_F(BoundsTest, aThreadThatWaitsForAMessageBoundsNobody) {
    addThread(rank, 100'000);
    EXPECT_FALSE(kernelIsDone());  // it may still issue something at 0
    engine.park(thread, ParkKind::message, "pthread_cond_wait");
    EXPECT_TRUE(kernelIsDone());
}

TEST_F(BoundsTest, aThreadThatIsWokenBoundsAtTheClockOfWhoWakesIt) {
    addThread(rank, 100'000);
    engine.park(thread, ParkKind::message, "pthread_cond_wait");
    engine.enter(thread, 20'000);
    EXPECT_EQ(thread.boundNs.load(), 20'000);
    EXPECT_FALSE(kernelIsDone());
}

TEST_F(BoundsTest, aThreadThatWaitsForALockBoundsWhileItsHolderRuns) {
    HostThread& holder = addThread(rank, 100'000);
    engine.park(thread, ParkKind::lock, "pthread_mutex_lock");
    thread.lockOwner = holder.tid;
    EXPECT_FALSE(kernelIsDone());  // the holder may give it back at any moment
    holder.waitKind = WaitKind::ops;
    holder.waitCount = 1;
    holder.waitStream[0] = stream;
    holder.waitSeq[0] = 1;
    holder.state = ThreadState::waiting;
    EXPECT_TRUE(kernelIsDone());
}

TEST_F(BoundsTest, aThreadThatWaitsForAnAnswerFromOutsideBoundsWhileAnybodyRuns) {
    addThread(rank, 100'000);
    engine.park(thread, ParkKind::outside, "recv");
    EXPECT_FALSE(kernelIsDone());
    EXPECT_FALSE(engine.advanceQuiescent(rank));
}

TEST_F(BoundsTest, aTimedWaitBoundsAtItsEndAndEndsThere) {
    HostThread& other = addThread(rank, 30'000);
    engine.park(thread, ParkKind::message, "pthread_cond_timedwait", 20'000);
    EXPECT_FALSE(kernelIsDone());
    EXPECT_EQ(thread.timedOut.load(), 1u);  // nobody can wake it before: the other one is past that
    EXPECT_EQ(thread.state, ThreadState::running);
    EXPECT_EQ(thread.boundNs.load(), 20'000);
    EXPECT_EQ(other.state, ThreadState::running);
}

TEST_F(BoundsTest, aTimedWaitDoesNotEndWhileAThreadMayWakeItInTheSameInstant) {
    addThread(rank, 20'000);
    engine.park(thread, ParkKind::message, "pthread_cond_timedwait", 20'000);
    engine.advance(rank);
    EXPECT_EQ(thread.timedOut.load(), 0u);
}

TEST_F(BoundsTest, theEarlierThreadOfAProcessHasItsTurnFirst) {
    HostThread& earlier = addThread(rank, 10'000);
    thread.boundNs = 20'000;
    thread.waitUntilNs = 20'000;
    thread.waitKind = WaitKind::turn;
    thread.state = ThreadState::waiting;
    arena.processes[rank].turnWaiters = 1;
    engine.advance(rank);
    EXPECT_EQ(thread.state, ThreadState::waiting);
    earlier.boundNs = 20'001;
    engine.forgetBlocker(rank);
    engine.advance(rank);
    EXPECT_EQ(thread.state, ThreadState::running);
}

}  // namespace
}  // namespace rankscope::vgpu

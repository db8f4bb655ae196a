// SPDX-License-Identifier: Apache-2.0
// Who bounds what is final while threads are blocked in calls of libc.
#include <unistd.h>

#include <atomic>
#include <thread>

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
    void awaitTurn(int64_t ns) {
        thread.boundNs = thread.waitUntilNs = ns;
        thread.waitKind = WaitKind::turn;
        thread.state = ThreadState::waiting;
        arena.processes[rank].turnWaiters = 1;
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

/// A thread of the system that is blocked until it is let go.
class Sleeper {
  public:
    Sleeper() {
        EXPECT_EQ(pipe(m_pipe), 0);
        m_thread = std::thread([this] {
            m_tid = gettid();
            char byte = 0;
            EXPECT_EQ(read(m_pipe[0], &byte, 1), 0);
        });
        while (m_tid == 0 || threadStateOf(getpid(), m_tid) != 'S') std::this_thread::yield();
    }
    ~Sleeper() {
        close(m_pipe[1]);
        m_thread.join();
        close(m_pipe[0]);
    }
    int32_t tid() const { return m_tid; }

  private:
    int m_pipe[2] = {-1, -1};
    std::atomic<int32_t> m_tid{0};
    std::thread m_thread;
};

class AnswerTest : public BoundsTest {
  protected:
    AnswerTest() {
        arena.processes[rank].pid = getpid();
        engine.park(thread, ParkKind::outside, "recv");
    }
    /// Whether the job goes on without the thread when nothing has moved for so long.
    bool goesOnAfter(int64_t quietMs, int32_t tid) {
        thread.tid = tid;
        EXPECT_FALSE(engine.advanceQuiescent(rank));  // from here on it is quiet
        arena.quietSinceMs -= quietMs;
        const bool goesOn = engine.advanceQuiescent(rank);
        EXPECT_EQ(goesOn, thread.left != 0);
        EXPECT_EQ(goesOn, kernelIsDone());
        return goesOn;
    }
};

TEST_F(AnswerTest, aJobGoesOnWithoutAThreadThatHasGotNoAnswer) {
    const Sleeper sleeper;
    EXPECT_TRUE(goesOnAfter(500, sleeper.tid()));
}

TEST_F(AnswerTest, aJobWaitsForAThreadThatHasGotItsAnswerAndIsLetWait) {
    EXPECT_FALSE(goesOnAfter(500, gettid()));  // the test's own thread runs
}

TEST_F(AnswerTest, aJobDoesNotWaitForAThreadThatRunsOnAndOn) {
    EXPECT_TRUE(goesOnAfter(1500, gettid()));
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
    awaitTurn(20'000);
    engine.advance(rank);
    EXPECT_EQ(thread.state, ThreadState::waiting);
    earlier.boundNs = 20'001;
    engine.forgetBlocker(rank);
    engine.advance(rank);
    EXPECT_EQ(thread.state, ThreadState::running);
}

TEST_F(BoundsTest, aTimedWaitThatEndsBeforeATurnGoesFirst) {
    HostThread& other = addThread(rank, 0);
    engine.park(other, ParkKind::message, "pthread_cond_timedwait", 10'000);
    awaitTurn(20'000);
    engine.advance(rank);
    EXPECT_EQ(other.timedOut.load(), 1u);
    EXPECT_EQ(other.boundNs.load(), 10'000);
    EXPECT_EQ(thread.state, ThreadState::waiting);
    engine.park(other, ParkKind::message, "pthread_cond_timedwait", 30'000);
    engine.advance(rank);
    EXPECT_EQ(thread.state, ThreadState::running);
}

TEST_F(BoundsTest, aLauncherThatSleepsIsNotWaitedForAndAForkedLoaderIs) {
    const uint32_t sleeping = addRank();
    HostThread& sleeper = arena.threads[sleeping];
    EXPECT_FALSE(engine.isBystander(sleeper));
    sleeper.sleepsOut = 1;
    EXPECT_TRUE(engine.isBystander(sleeper));
    arena.processes[sleeping].isForked = 1;
    EXPECT_FALSE(engine.isBystander(sleeper));
}

}  // namespace
}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
// The event loop: a conservative discrete-event simulation of every stream and link of an island of ranks.
// Called by whoever waits, with Arena::lock held. Events are final once no live host thread can still issue work before
// them.
#pragma once

#include <vector>

#include "reference/vgpu/engine/arena.h"

namespace rankscope::vgpu {

class Engine {
  public:
    explicit Engine(Arena& arena) : m_arena(arena) {}

    /// Processes every event that is final now in the island of `process`. True if anything happened.
    bool advance(uint32_t process);

    /// When every thread of the job waits, the earliest event of all is final too, whatever the bounds say: processes
    /// that one. `process`: any one of them.
    bool advanceQuiescent(uint32_t process);

    /// True when nothing of the job moves, and nothing that could.
    bool standsStill();

    /// True when no device has anything to do, and whoever could change that waits; threads that never used a device
    /// may sleep in turns.
    bool isIdle();

    /// A thread that runs, but of which nobody expects anything: it sleeps, in a process that never gave a device
    /// anything to do and was not forked off another one (a launcher that looks after its ranks once in a while, and
    /// not a rank's loader).
    bool isBystander(const HostThread& thread) const;

    /// A thread of the island now waits for something else than operations: its next advance looks at everything.
    void forgetBlocker(uint32_t process) { m_arena.processes[rootOf(process)].blocker = kNone; }

    /// Two islands become one; from now on their threads bound each other.
    void mergeIslands(uint32_t processA, uint32_t processB);

    /// A dead process leaves the bounds; its streams stop.
    void removeProcess(uint32_t process);

    /// Ends, at `nowNs`, a stream's running operation and all queued ones that belong to the communicator.
    void abortTransfers(uint32_t stream, uint32_t comm, int64_t nowNs);

    /// The thread is blocked from now on in `call` of libc, until `deadlineNs` at the latest.
    void park(HostThread& thread, ParkKind kind, const char* call, int64_t deadlineNs = kForever);

    /// A parked or observing thread runs again, no earlier than `ns`: in the bounds before whoever woke it goes on.
    void enter(HostThread& thread, int64_t ns);

    /// A parked thread was woken by the real clock: it looks around, but does not bound anybody.
    void observe(HostThread& thread);

    /// Lets a waiting thread go on at host time `ns`.
    void resume(HostThread& thread, int64_t ns);

    /// True when the operations `thread` waits for are done; `resumeNs`: when the last of them ended, no earlier than
    /// the wait began.
    bool waitSatisfied(const HostThread& thread, int64_t& resumeNs) const;

  private:
    int64_t boundOf(uint32_t root);
    bool blockedAsBefore(uint32_t root) const;
    bool drain(uint32_t root);
    void push(uint32_t root, HeapEntry entry);
    HeapEntry pop(uint32_t root);
    /// Of the island; kForever: there is none.
    int64_t nextEventNs(uint32_t root) const;
    void handle(const HeapEntry& entry);
    void continueStream(uint32_t streamIndex, int64_t nowNs);
    void startWork(Stream& stream, uint32_t streamIndex, Op& op, int64_t nowNs);
    void scheduleEnd(Stream& stream, uint32_t streamIndex, Op& op, int64_t nowNs);
    void finish(uint32_t streamIndex, int64_t nowNs);
    void arrive(Stream& stream, Op& op, int64_t nowNs);
    void beginFlow(Transfer& transfer, int64_t nowNs);
    void endFlow(Transfer& transfer, int64_t nowNs);
    void endTransfer(Transfer& transfer, int64_t nowNs);
    void planLeaving(Transfer& transfer);
    std::vector<uint32_t> takeLeaving(Transfer& transfer);
    void leave(const std::vector<uint32_t>& streams, int64_t nowNs);
    void updateFlows(uint32_t root, int64_t nowNs);
    void changeResidents(uint32_t device, int direction, int64_t nowNs);
    void changeCompute(uint32_t device, int direction);
    Transfer& transferOf(const Part& part, const Op& op);
    void release(Transfer& transfer);
    void forgetPart(uint32_t process, uint32_t part);
    int64_t lockBoundOf(const Process& process) const;
    bool holderWaits(const Process& process, const HostThread& thread) const;
    bool settleQueries(uint32_t root);
    bool settleTurns(uint32_t root, int64_t boundNs);
    bool hasTurn(const HostThread& thread, uint32_t root, int64_t boundNs) const;
    bool outsideMayStillWake();
    bool isOutsideAnswered() const;
    bool hasEvents() const;
    void note(const HostThread& thread);
    HostThread* earliestAsking();
    HostThread* earliestDeadline(uint32_t root) const;
    bool settleDeadlines(uint32_t root, int64_t boundNs);
    void timeOut(HostThread& thread);
    void reach(Process& island, int64_t ns);
    void schedule(Stream& stream, uint32_t streamIndex);
    void wakeThreads(uint32_t process);
    uint32_t rootOf(uint32_t process) const { return m_arena.processes[process].island; }
    uint64_t orderOf(const Stream& stream) const;

    Arena& m_arena;
    int64_t m_limitNs = 0;  ///< events before this are final
};

}  // namespace rankscope::vgpu

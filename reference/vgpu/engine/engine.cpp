// SPDX-License-Identifier: Apache-2.0
// Bounds, the event loop, and the host threads that wait for it.
#include "reference/vgpu/engine/engine.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "reference/vgpu/engine/engine_events.h"

namespace rankscope::vgpu {
namespace {

/// What a host thread spends between the end of what it waited for and its next instruction.
constexpr int64_t kWakeNs = 1500;

/// How long a job that waits for an answer from outside stands still before it goes on without. Answers within one
/// machine take less than a millisecond; twenty of them leave room for a chain of processes that hand one on.
constexpr int64_t kOutsideMs = 20;
/// The same while the system lets one that has got its answer wait for a processor: some hundred busy programs' turns.
constexpr int64_t kRunnableMs = 1000;

/// Where a thread stands in the order of its family: by virtual time, then by birth; one that waits for the end of a
/// time comes last, since another may still wake it in the same instant.
struct Place {
    int64_t ns;
    uint32_t process, number;
};

bool precedes(Place a, Place b) {
    return std::tie(a.ns, a.process, a.number) < std::tie(b.ns, b.process, b.number);
}

bool waitsForTurn(const HostThread& thread) {
    return thread.state == ThreadState::waiting &&
           (thread.waitKind == WaitKind::turn || thread.waitKind == WaitKind::timer);
}

Place placeOf(const HostThread& thread) {
    if (thread.state != ThreadState::waiting)
        return {thread.boundNs.load(std::memory_order_acquire), thread.process, thread.number};
    const bool comesLast = thread.waitKind == WaitKind::timer;
    return {thread.waitUntilNs, comesLast ? kNone : thread.process, thread.number};
}

/// A turn takes no time.
int64_t endOfAsking(const HostThread& thread) {
    return thread.waitKind == WaitKind::turn ? thread.boundNs.load() : thread.waitUntilNs;
}

bool later(const HeapEntry& a, const HeapEntry& b) {
    if (a.timeNs != b.timeNs) return a.timeNs > b.timeNs;
    if (a.order != b.order) return a.order > b.order;
    return a.kind > b.kind;
}

}  // namespace

int64_t Engine::boundOf(uint32_t root) {
    int64_t bound = kForever;
    uint32_t blocker = kNone;
    for (uint32_t p = root; p != kNone; p = m_arena.processes[p].nextOfIsland) {
        bool waitsForLock = false;
        for (uint32_t t = m_arena.processes[p].firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
            const HostThread& thread = m_arena.threads[t];
            switch (thread.state.load(std::memory_order_acquire)) {
                case ThreadState::running: {
                    const int64_t ns = thread.boundNs.load(std::memory_order_acquire);
                    if (ns < bound) {
                        bound = ns;
                        blocker = t;
                    }
                    break;
                }
                case ThreadState::waiting:
                    // A thread in a rendezvous goes on when members come whose clocks this island does not know.
                    if (thread.waitKind == WaitKind::comm)
                        bound = std::min(bound, thread.boundNs.load(std::memory_order_acquire));
                    if (thread.waitKind == WaitKind::turn)  // it may have launches that have no price yet
                        bound = std::min(bound, thread.boundNs.load(std::memory_order_acquire));
                    if (thread.waitKind != WaitKind::comm && thread.waitKind != WaitKind::ops)
                        bound = std::min(bound, thread.waitUntilNs);
                    break;
                case ThreadState::parked:
                    waitsForLock |= thread.parkKind == ParkKind::lock;
                    bound = std::min(bound, thread.deadlineNs);
                    if (thread.parkKind == ParkKind::outside && !thread.left && thread.hasActed)
                        bound = std::min(bound, thread.boundNs.load(std::memory_order_acquire));
                    break;
                case ThreadState::free:
                case ThreadState::observing:
                    break;
            }
        }
        if (waitsForLock) bound = std::min(bound, lockBoundOf(m_arena.processes[p]));
    }
    Process& island = m_arena.processes[root];
    const bool isBlocker =
        blocker != kNone && m_arena.threads[blocker].boundNs.load(std::memory_order_relaxed) == bound;
    island.blocker = isBlocker ? blocker : kNone;
    island.blockerNs = bound;
    return bound;
}

/// True while the thread that ended the last advance has not moved: whatever was submitted since then is later than
/// what it allows, and all else has been processed.
bool Engine::blockedAsBefore(uint32_t root) const {
    const Process& island = m_arena.processes[root];
    if (island.blocker == kNone) return false;
    const HostThread& thread = m_arena.threads[island.blocker];
    return thread.state.load(std::memory_order_acquire) == ThreadState::running && rootOf(thread.process) == root &&
           thread.boundNs.load(std::memory_order_acquire) == island.blockerNs;
}

/// The earliest clock among the process's threads that wait for a lock whose holder can give it back at any moment.
int64_t Engine::lockBoundOf(const Process& process) const {
    int64_t bound = kForever;
    for (uint32_t t = process.firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
        const HostThread& thread = m_arena.threads[t];
        if (thread.state == ThreadState::parked && thread.parkKind == ParkKind::lock && !holderWaits(process, thread))
            bound = std::min(bound, thread.boundNs.load(std::memory_order_acquire));
    }
    return bound;
}

/// True if nobody gives the lock back before virtual time, or a thread that it depends on, goes on. Who holds it is not
/// always known: then it may be any other thread, unless one runs.
bool Engine::holderWaits(const Process& process, const HostThread& thread) const {
    if (thread.lockOwner == kNeverWaits) return false;
    for (uint32_t t = process.firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
        const HostThread& other = m_arena.threads[t];
        if (&other == &thread) continue;
        const ThreadState state = other.state;
        if (thread.lockOwner && other.tid == thread.lockOwner)
            return state == ThreadState::waiting || state == ThreadState::parked;
        if (!thread.lockOwner && state == ThreadState::running) return false;
    }
    return !thread.lockOwner;
}

bool Engine::advance(uint32_t process) {
    bool progressed = false;
    uint32_t root = rootOf(process);
    if (blockedAsBefore(root)) return false;
    for (;;) {
        // Bounds first, submissions second: what is submitted after the look at a bound carries a later host time.
        int64_t bound = boundOf(root);
        m_limitNs = bound == kForever ? kForever : bound + m_arena.launchNs;
        bool moved = drain(root);
        Process& island = m_arena.processes[root];
        for (;;) {
            if (island.flowsDirty && nextEventNs(root) > island.nowNs) {
                updateFlows(root, island.nowNs);
                continue;
            }
            if (nextEventNs(root) >= m_limitNs) break;
            HeapEntry entry = pop(root);
            reach(island, entry.timeNs);
            handle(entry);
            m_arena.moves.fetch_add(1, std::memory_order_relaxed);
            moved = true;
        }
        if (settleQueries(root)) moved = true;
        if (!moved && settleTurns(root, bound)) moved = true;
        if (!moved && settleDeadlines(root, bound)) moved = true;
        if (!moved) break;
        progressed = true;
    }
    if (progressed) m_arena.progress.fetch_add(1, std::memory_order_relaxed);
    return progressed;
}

/// Threads that never used a device (a watchdog, a launcher) come and go without end, whether the job moves or not.
void Engine::note(const HostThread& thread) {
    m_arena.progress.fetch_add(1, std::memory_order_relaxed);
    if (thread.hasActed && m_arena.processes[thread.process].submitted.load(std::memory_order_relaxed) != 0)
        m_arena.moves.fetch_add(1, std::memory_order_relaxed);
}

bool Engine::isBystander(const HostThread& thread) const {
    const Process& process = m_arena.processes[thread.process];
    return thread.sleepsOut.load(std::memory_order_acquire) != 0 && !process.isForked &&
           process.submitted.load(std::memory_order_relaxed) == 0;
}

bool Engine::advanceQuiescent(uint32_t process) {
    if (blockedAsBefore(rootOf(process))) return false;  // one thread that runs is enough
    uint32_t live = 0;
    for (uint32_t p = 0; p < m_arena.processCount; p++) {
        const Process& member = m_arena.processes[p];
        if (!member.alive) continue;
        live++;
        for (uint32_t t = member.firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess)
            if (m_arena.threads[t].state == ThreadState::running && !isBystander(m_arena.threads[t])) return false;
    }
    // A member that has not come to life yet is a thread that still runs.
    for (uint32_t c = 0; c < m_arena.commCount; c++) {
        const Comm& comm = m_arena.comms[c];
        if (comm.inUse && !comm.complete && comm.size > live) return false;
    }
    if (outsideMayStillWake()) return false;
    uint32_t root = kNone;
    for (uint32_t p = 0; p < m_arena.processCount; p++) {
        Process& island = m_arena.processes[p];
        if (island.island != p) continue;
        if (drain(p)) return true;
        if (island.flowsDirty) updateFlows(p, island.nowNs);
        if (island.heapSize && (root == kNone || later(m_arena.queues[root].heap[0], m_arena.queues[p].heap[0])))
            root = p;
    }
    const int64_t eventNs = root == kNone ? kForever : nextEventNs(root);
    HostThread* asking = earliestAsking();
    HostThread* due = earliestDeadline(kNone);
    const int64_t askedNs = asking ? asking->waitUntilNs : kForever;
    // Where nothing but deadlines is left, time does not run: they wait for the real clock.
    if (due && due->deadlineNs < std::min(eventNs, askedNs) && std::min(eventNs, askedNs) != kForever) {
        timeOut(*due);
        note(*due);
        return true;
    }
    if (asking && askedNs < eventNs) {
        resume(*asking, endOfAsking(*asking));
        note(*asking);
        return true;
    }
    if (root == kNone) return false;
    HeapEntry entry = pop(root);
    reach(m_arena.processes[root], entry.timeNs);
    handle(entry);
    m_arena.progress.fetch_add(1, std::memory_order_relaxed);
    m_arena.moves.fetch_add(1, std::memory_order_relaxed);
    return true;
}

/// Of the threads that only ask for what has happened up to their time, the earliest of the job.
HostThread* Engine::earliestAsking() {
    HostThread* earliest = nullptr;
    int32_t rank = 0;
    for (uint32_t t = 0; t < m_arena.threadCount; t++) {
        HostThread& thread = m_arena.threads[t];
        if (thread.state != ThreadState::waiting || thread.waitKind == WaitKind::ops ||
            thread.waitKind == WaitKind::comm)
            continue;
        const int32_t itsRank = m_arena.processes[thread.process].rank;
        const Place place = placeOf(thread);
        if (earliest) {
            const Place best = placeOf(*earliest);
            if (std::tie(best.ns, rank, best.process, best.number) <
                std::tie(place.ns, itsRank, place.process, place.number))
                continue;
        }
        earliest = &thread;
        rank = itsRank;
    }
    return earliest;
}

/// Of the waits that have an end in virtual time, in one island or (kNone) in all of them, the one that ends first.
HostThread* Engine::earliestDeadline(uint32_t root) const {
    HostThread* earliest = nullptr;
    for (uint32_t t = 0; t < m_arena.threadCount; t++) {
        HostThread& thread = m_arena.threads[t];
        if (thread.state != ThreadState::parked || thread.deadlineNs == kForever) continue;
        if (root != kNone && rootOf(thread.process) != root) continue;
        if (!earliest || std::tie(thread.deadlineNs, thread.process, thread.number) <
                             std::tie(earliest->deadlineNs, earliest->process, earliest->number))
            earliest = &thread;
    }
    return earliest;
}

/// A wait ends by itself when nobody can end it before: neither a thread that runs, nor one that the device lets go on.
bool Engine::settleDeadlines(uint32_t root, int64_t boundNs) {
    HostThread* first = earliestDeadline(root);
    if (!first || boundNs < first->deadlineNs) return false;
    const uint32_t family = m_arena.processes[first->process].family;
    for (uint32_t p = root; p != kNone; p = m_arena.processes[p].nextOfIsland) {
        if (m_arena.processes[p].family != family) continue;
        for (uint32_t t = m_arena.processes[p].firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
            const HostThread& other = m_arena.threads[t];
            if (other.state == ThreadState::running && other.boundNs.load() <= first->deadlineNs) return false;
        }
    }
    timeOut(*first);
    return true;
}

void Engine::timeOut(HostThread& thread) {
    thread.timedOut.store(1, std::memory_order_release);
    enter(thread, thread.deadlineNs);
    m_limitNs = std::min(m_limitNs, thread.deadlineNs + m_arena.launchNs);
    thread.futex.fetch_add(1, std::memory_order_release);
    wakeBehindLock(thread.futex);
}

bool Engine::isIdle() {
    for (uint32_t t = 0; t < m_arena.threadCount; t++) {
        const HostThread& thread = m_arena.threads[t];
        const bool onlySleeps = thread.sleepsOut.load(std::memory_order_acquire) && !thread.hasActed;
        if (thread.state == ThreadState::running && !onlySleeps && !isBystander(thread)) return false;
    }
    return !hasEvents();
}

/// Looks only; the next advance would find the same.
bool Engine::standsStill() {
    for (uint32_t t = 0; t < m_arena.threadCount; t++)
        if (m_arena.threads[t].state == ThreadState::running && !isBystander(m_arena.threads[t])) return false;
    return !hasEvents() && earliestAsking() == nullptr;
}

bool Engine::hasEvents() const {
    for (uint32_t p = 0; p < m_arena.processCount; p++) {
        const Process& process = m_arena.processes[p];
        if (process.island == p && process.heapSize) return true;
        if (process.alive && process.submitted.load() != process.drained.load()) return true;
    }
    return false;
}

/// An event before the island's present is one that came too late: of a thread that was woken from outside the
/// simulation after the job had gone on without it.
void Engine::reach(Process& island, int64_t ns) {
    if (ns < island.nowNs) m_arena.lateEvents++;
    island.nowNs = std::max(island.nowNs, ns);
}

/// Whether a thread that is blocked outside is awake again, if only in the system's queue: it has got its answer, or as
/// a server's, which never uses a device, a question.
bool Engine::isOutsideAnswered() const {
    for (uint32_t t = 0; t < m_arena.threadCount; t++) {
        const HostThread& thread = m_arena.threads[t];
        if (thread.state == ThreadState::parked && thread.parkKind == ParkKind::outside && !thread.left &&
            threadStateOf(m_arena.processes[thread.process].pid, thread.tid) == 'R')
            return true;
    }
    return false;
}

/// Threads that are blocked in a call that a process without a clock may end keep the job from going on for
/// kOutsideMs of real time: an answer is on its way, or they wait for somebody who himself waits for the device. This
/// guards an order of events only; what each thread's clock shows does not depend on it.
bool Engine::outsideMayStillWake() {
    bool someoneMay = false;
    for (uint32_t t = 0; t < m_arena.threadCount; t++) {
        const HostThread& thread = m_arena.threads[t];
        someoneMay |= thread.state == ThreadState::parked && thread.parkKind == ParkKind::outside && thread.hasActed &&
                      !thread.left;
    }
    if (!someoneMay) return false;
    const uint64_t progress = m_arena.progress.load();
    if (m_arena.quietSinceMs == 0 || m_arena.quietProgress != progress) {
        m_arena.quietSinceMs = monotonicMs();
        m_arena.quietProgress = progress;
        return true;
    }
    const int64_t quietMs = monotonicMs() - m_arena.quietSinceMs;
    if (quietMs < kOutsideMs || (quietMs < kRunnableMs && isOutsideAnswered())) return true;
    for (uint32_t t = 0; t < m_arena.threadCount; t++)
        if (m_arena.threads[t].state == ThreadState::parked) m_arena.threads[t].left = 1;
    return false;
}

void Engine::mergeIslands(uint32_t processA, uint32_t processB) {
    uint32_t a = rootOf(processA), b = rootOf(processB);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    Process& kept = m_arena.processes[a];
    Process& gone = m_arena.processes[b];
    uint32_t last = a;
    while (m_arena.processes[last].nextOfIsland != kNone) last = m_arena.processes[last].nextOfIsland;
    m_arena.processes[last].nextOfIsland = b;
    for (uint32_t p = b; p != kNone; p = m_arena.processes[p].nextOfIsland) m_arena.processes[p].island = a;
    for (uint32_t i = 0; i < gone.heapSize; i++) push(a, m_arena.queues[b].heap[i]);
    gone.heapSize = 0;
    while (gone.firstFlow != kNone) {
        uint32_t index = gone.firstFlow;
        Transfer& transfer = m_arena.transfers[index];
        gone.firstFlow = transfer.nextActive;
        transfer.nextActive = kept.firstFlow;
        transfer.prevActive = kNone;
        if (kept.firstFlow != kNone) m_arena.transfers[kept.firstFlow].prevActive = index;
        kept.firstFlow = index;
    }
    kept.blocker = gone.blocker = kNone;
    kept.flowsDirty |= gone.flowsDirty;
    kept.nowNs = std::max(kept.nowNs, gone.nowNs);
}

void Engine::removeProcess(uint32_t index) {
    Process& process = m_arena.processes[index];
    process.alive = 0;
    if (process.endingSinceMs != 0) m_arena.endings--;
    process.endingSinceMs = 0;
    process.isGone = 0;
    for (uint32_t t = process.firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
        HostThread& thread = m_arena.threads[t];
        process.lastClockNs = std::max(process.lastClockNs, thread.boundNs.load());
        thread.state = ThreadState::free;
    }
    addActive(m_arena, process, -static_cast<int32_t>(process.active.load()));
    for (uint32_t s = process.firstStream; s != kNone; s = m_arena.streams[s].nextOfProcess) {
        Stream& stream = m_arena.streams[s];
        stream.head = stream.tail = kNone;
        stream.state = StreamState::idle;
        stream.version++;
    }
    m_arena.progress.fetch_add(1, std::memory_order_relaxed);
    m_arena.moves.fetch_add(1, std::memory_order_relaxed);
}

void Engine::park(HostThread& thread, ParkKind kind, const char* call, int64_t deadlineNs) {
    Process& process = m_arena.processes[thread.process];
    thread.parkKind = kind;
    thread.deadlineNs = deadlineNs;
    thread.timedOut = 0;
    thread.lockOwner = 0;
    thread.left = 0;
    std::snprintf(thread.inCall, sizeof thread.inCall, "%s", call);
    if (thread.state == ThreadState::running) addActive(m_arena, process, -1);
    thread.state.store(ThreadState::parked, std::memory_order_release);
    note(thread);
}

void Engine::enter(HostThread& thread, int64_t ns) {
    Process& process = m_arena.processes[thread.process];
    thread.boundNs.store(std::max(thread.boundNs.load(), ns), std::memory_order_release);
    if (thread.state == ThreadState::waiting && thread.waitKind == WaitKind::timer)
        return resume(thread, thread.boundNs.load());
    if (thread.state == ThreadState::running || thread.state == ThreadState::waiting) return;
    addActive(m_arena, process, 1);
    thread.state.store(ThreadState::running, std::memory_order_release);
    note(thread);
}

void Engine::observe(HostThread& thread) {
    if (thread.state == ThreadState::parked) thread.state.store(ThreadState::observing, std::memory_order_release);
}

void Engine::resume(HostThread& thread, int64_t ns) {
    note(thread);
    thread.resumeNs = ns;
    thread.boundNs.store(ns, std::memory_order_release);
    thread.state.store(ThreadState::running, std::memory_order_release);
    if (m_limitNs != kForever || ns < kForever - m_arena.launchNs)
        m_limitNs = std::min(m_limitNs, ns + m_arena.launchNs);
    thread.futex.fetch_add(1, std::memory_order_release);
    wakeBehindLock(thread.futex);
}

bool Engine::waitSatisfied(const HostThread& thread, int64_t& resumeNs) const {
    resumeNs = thread.boundNs.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < thread.waitCount; i++) {
        const Stream& stream = m_arena.streams[thread.waitStream[i]];
        if (!finished(m_arena, thread.waitStream[i], thread.waitSeq[i])) return false;
        resumeNs = std::max(resumeNs, stream.endNs[thread.waitSeq[i] % kStreamHistory].load(std::memory_order_relaxed));
    }
    if (resumeNs > thread.boundNs.load(std::memory_order_relaxed)) resumeNs += kWakeNs;
    return true;
}

void Engine::wakeThreads(uint32_t process) {
    for (uint32_t t = m_arena.processes[process].firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
        HostThread& thread = m_arena.threads[t];
        int64_t resumeNs = 0;
        if (thread.state == ThreadState::waiting && thread.waitKind == WaitKind::ops && waitSatisfied(thread, resumeNs))
            resume(thread, resumeNs);
    }
}

bool Engine::settleQueries(uint32_t root) {
    bool settled = false;
    for (uint32_t p = root; p != kNone; p = m_arena.processes[p].nextOfIsland) {
        for (uint32_t t = m_arena.processes[p].firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
            HostThread& thread = m_arena.threads[t];
            if (thread.state == ThreadState::waiting && thread.waitKind == WaitKind::until &&
                thread.waitUntilNs < m_limitNs) {
                resume(thread, thread.waitUntilNs);
                settled = true;
            }
        }
    }
    return settled;
}

/// In each family the earliest of the threads that wait for their turn gets it, when no other thread can act before.
bool Engine::settleTurns(uint32_t root, int64_t boundNs) {
    bool settled = false;
    for (uint32_t p = root; p != kNone; p = m_arena.processes[p].nextOfIsland) {
        if (m_arena.processes[p].family != p) continue;
        if (m_arena.processes[p].turnWaiters.load(std::memory_order_relaxed) == 0) continue;
        HostThread* first = nullptr;
        for (uint32_t q = root; q != kNone; q = m_arena.processes[q].nextOfIsland) {
            if (m_arena.processes[q].family != p) continue;
            for (uint32_t t = m_arena.processes[q].firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
                HostThread& thread = m_arena.threads[t];
                if (waitsForTurn(thread) && (!first || precedes(placeOf(thread), placeOf(*first)))) first = &thread;
            }
        }
        if (!first || !hasTurn(*first, root, boundNs)) continue;
        resume(*first, endOfAsking(*first));
        settled = true;
    }
    return settled;
}

bool Engine::hasTurn(const HostThread& thread, uint32_t root, int64_t boundNs) const {
    const uint32_t family = m_arena.processes[thread.process].family;
    for (uint32_t p = root; p != kNone; p = m_arena.processes[p].nextOfIsland) {
        if (m_arena.processes[p].family != family) continue;
        for (uint32_t t = m_arena.processes[p].firstThread; t != kNone; t = m_arena.threads[t].nextOfProcess) {
            const HostThread& other = m_arena.threads[t];
            if (&other == &thread) continue;
            const ThreadState state = other.state.load(std::memory_order_acquire);
            if (state == ThreadState::running && precedes(placeOf(other), placeOf(thread))) return false;
            // A wait that ends before goes first, also where the thread has come here by what another process told it.
            if (state == ThreadState::parked && other.process == thread.process &&
                other.deadlineNs < thread.waitUntilNs)
                return false;
            // One that waits for the device may be resumed before, as long as the island has not come so far.
            if (state == ThreadState::waiting && !waitsForTurn(other) &&
                boundNs < std::min(thread.waitUntilNs, thread.boundNs.load(std::memory_order_acquire)))
                return false;
        }
    }
    return true;
}

void Engine::push(uint32_t root, HeapEntry entry) {
    Process& island = m_arena.processes[root];
    if (island.heapSize == kHeapEntries) refuseMore("events to come", kHeapEntries);
    uint32_t at = island.heapSize++;
    HeapEntry* heap = m_arena.queues[root].heap;
    heap[at] = entry;
    std::push_heap(heap, heap + island.heapSize, later);
}

HeapEntry Engine::pop(uint32_t root) {
    Process& island = m_arena.processes[root];
    HeapEntry* heap = m_arena.queues[root].heap;
    std::pop_heap(heap, heap + island.heapSize, later);
    return heap[--island.heapSize];
}

int64_t Engine::nextEventNs(uint32_t root) const {
    return m_arena.processes[root].heapSize == 0 ? kForever : m_arena.queues[root].heap[0].timeNs;
}

void Engine::handle(const HeapEntry& entry) {
    switch (entry.kind) {
        case kStreamReady:
            if (m_arena.streams[entry.index].version == entry.version) continueStream(entry.index, entry.timeNs);
            break;
        case kWorkEnds:
            if (m_arena.streams[entry.index].version != entry.version) break;
            finish(entry.index, entry.timeNs);
            continueStream(entry.index, entry.timeNs);
            break;
        case kFlowBegins:
            beginFlow(m_arena.transfers[entry.index], entry.timeNs);
            break;
        case kFlowEnds:
            if (m_arena.transfers[entry.index].inUse && m_arena.transfers[entry.index].version == entry.version)
                endFlow(m_arena.transfers[entry.index], entry.timeNs);
            break;
        default:
            break;
    }
}

}  // namespace rankscope::vgpu

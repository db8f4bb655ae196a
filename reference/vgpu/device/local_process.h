// SPDX-License-Identifier: Apache-2.0
// This process as a member of the virtual job: its identity, host clocks, streams, and the hand-over of operations to
// the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "reference/vgpu/engine/arena.h"
#include "reference/vgpu/engine/cluster.h"
#include "reference/vgpu/engine/engine.h"
#include "reference/vgpu/engine/work_price.h"

namespace rankscope::vgpu {

/// A launched graph that is reported as a whole.
struct GraphSpan {
    size_t nodesLeft = 0;
    int64_t startNs = kForever, endNs = 0;
};

/// Wants to know when an operation has ended: what a profiler plugin is told lies above this folder.
class OperationObserver : public std::enable_shared_from_this<OperationObserver> {
  public:
    virtual ~OperationObserver() = default;
    /// Keeps what is to be told. `startNs` and `endNs` are the operation's times as the device's clock shows them.
    /// LocalProcess::mutex() is held.
    virtual void keep(const Op& op, const Part* parts, int64_t startNs, int64_t endNs) = 0;
};

/// What a finished operation is reported as; kept beside the shared Op because nobody else needs it.
struct OpReport {
    enum class Kind : uint8_t { none, kernel, copy, memset } kind = Kind::none;
    bool wanted = false;  ///< its activity kind was enabled when it was issued
    uint32_t correlation = 0, streamId = 0, deviceId = 0, contextId = 0;
    const char* name = nullptr;
    int grid[3]{}, block[3]{};
    uint32_t staticShared = 0, dynamicShared = 0;
    uint16_t registers = 0;
    uint64_t bytes = 0;
    uint8_t copyKind = 0, srcKind = 0, dstKind = 0, isAsync = 0;
    uint32_t value = 0;
    uint32_t graphId = 0;
    uint64_t graphNode = 0;
    std::shared_ptr<OperationObserver> channels;   ///< a profiler plugin wants to know when this kernel ran
    std::shared_ptr<OperationObserver> transfers;  ///< and what its proxy did on the network
    std::shared_ptr<GraphSpan> span;               ///< set: this operation has no record of its own
};

struct StreamPoint {
    uint32_t stream;  ///< index in the arena
    uint64_t seq;
};

struct LocalStream {
    uint32_t shared = kNone;
    uint32_t id = 0;       ///< as CUPTI shows it
    uint32_t ordinal = 0;  ///< in order of creation, within the process
    int device = 0;
    unsigned flags = 0;
    int priority = 0;
    uint64_t submitted = 0;                  ///< number of the newest operation
    uint64_t roomUntil = kStreamDepth;       ///< the queue is not full before that many
    uint64_t legacySeen = 0;                 ///< newest operation of the legacy stream this stream already waits for
    uint64_t kernels = 0;                    ///< counts for the noise
    std::map<uint32_t, uint64_t> waitedFor;  ///< newest operation of other streams this one already waits for
    bool perThread = false;
    std::shared_ptr<class Capture> capture;  ///< set: operations become nodes of its graph
    uint32_t captureLane = 0;
};

struct LocalDevice {
    uint32_t shared = kNone;
    int rank = -1;
    double computeFactor = 1;
    LocalStream* legacy = nullptr;
    std::vector<LocalStream*> streams;  ///< in order of creation
    uint64_t memoryUsed = 0;
    uint32_t nextStreamId = 13;  // what a fresh context of the real library counts from
};

/// The virtual clock of one application thread.
struct ThreadClock {
    HostThread* shared = nullptr;
    int64_t ns = 0;
    int device = 0;
    int32_t tid = 0;
    uint64_t generation = 0;
    uint32_t asked = 0;  ///< questions in a row that were answered with "not yet", of a thread that only asks
};

/// No clock came with what woke a thread: somebody did it who has none.
inline constexpr int64_t kNoClock = -1;
inline constexpr uint64_t kAllBytes = ~uint64_t{0};

/// One part of an operation that moves data between ranks, before it has a place in the arena.
using PartSpec = Part;

struct OpSpec {
    OpKind kind = OpKind::kernel;
    int64_t workNs = 0;
    bool contended = false;
    StreamPoint dependency{kNone, 0};
    std::vector<PartSpec> parts;
};

/// While it lives, the calling thread stands for another one of the process: cuptiGetTimestamp shows that one's time.
class BorrowedClock {
  public:
    explicit BorrowedClock(int64_t ns);
    ~BorrowedClock();
    BorrowedClock(const BorrowedClock&) = delete;
    BorrowedClock& operator=(const BorrowedClock&) = delete;
    void set(int64_t ns);
};

/// The virtual node of this process by what launchers and RANKSCOPE_HOST say; it joins no job by asking.
int nodeByEnvironment(const Cluster& cluster);

class LocalProcess {
  public:
    static LocalProcess& instance();
    /// The same if the process has ever used CUDA, else null.
    static LocalProcess* ifAny();

    /// The calling thread's clock, for a call that issues work or waits: joins the job and registers the thread on the
    /// first one.
    ThreadClock& clock();
    /// The same for a call that only asks: it takes no time in a thread that has done nothing else so far (a watchdog).
    ThreadClock& askingClock();
    /// True for a thread that the real clock woke and that has not acted since: its clock stands still and bounds
    /// nobody.
    static bool observes(const ThreadClock& thread);
    static bool onlyAsks(const ThreadClock& thread) { return !thread.shared->hasActed; }
    /// The calling thread's clock if it has one, else null. Never registers.
    static ThreadClock* clockIfAny();
    /// The same for calls of libc, which may come in any state: null in threads that observe or have no clock.
    static ThreadClock* clockInBounds();

    const Cluster& cluster() const { return m_cluster; }
    int node() const { return m_node; }
    /// Empty unless the scenario or RANKSCOPE_VGPU_PRICES names a table.
    const PriceTable& prices() const { return m_prices; }
    Arena& arena() { return *m_arena; }
    bool hasArena() const { return m_arena != nullptr; }
    uint32_t index() const { return m_index; }
    int rank() const { return m_rank; }
    int32_t pid() const { return m_pid; }
    uint64_t hostKey() const { return m_hostKey; }
    int deviceCount() const { return m_cluster.ranksPerNode; }
    /// True for a process that was forked from one of the job.
    bool isForked() const { return m_arena && m_arena->processes[m_index].family != m_index; }
    /// True once an operation of the process was put on a stream, and in those that were forked.
    bool isUnderWay() const { return isForked() || (m_arena && m_arena->processes[m_index].submitted.load() != 0); }

    /// Serialises what touches this process's streams, devices and operations.
    std::mutex& mutex() { return m_mutex; }

    // The following need mutex() held.
    LocalDevice& device(int ordinal);
    bool usesDevice(int ordinal) const { return m_devices.contains(ordinal); }
    LocalStream* createStream(int device, unsigned flags, int priority, bool isLegacy = false);
    StreamPoint submit(LocalStream& stream, OpSpec spec, const OpReport& report);
    /// The operation submitted last.
    Op& newestOp() { return m_arena->queues[m_index].ops[m_newestOp]; }
    void waitEventOrder(LocalStream& stream, StreamPoint point);
    void harvest(int64_t upToNs = kForever);
    /// Of what has been simulated, what ended by then; the rest stays.
    void harvestEnded(int64_t byNs);
    void adoptRank(int rank);
    double noiseFactor(LocalStream& stream);

    // The following must be called without it.
    /// Makes `tell` send what observers have kept, whenever a thread has waited for operations.
    void sendObservationsBy(void (*tell)(LocalProcess&)) { m_sendObservations.store(tell, std::memory_order_release); }
    void sendObservations() {
        if (const auto send = m_sendObservations.load(std::memory_order_acquire)) send(*this);
    }
    /// Lets the thread's clock reach the end of all given operations.
    void waitFor(std::span<const StreamPoint> points);
    /// True if the operation is done at the thread's present time.
    bool doneNow(StreamPoint point);
    /// True if the simulation has come past the end of all operations, and their effects have happened, whatever the
    /// time of the caller, which needs no clock.
    bool haveEnded(std::span<const StreamPoint> points);
    /// Returns once everything that ends up to the thread's present time has been simulated.
    void settle();
    /// Waits until the communicator is complete; false if it was aborted.
    bool waitForComm(uint32_t comm);
    /// Publishes the clock: from now on this thread issues nothing earlier. Not while it has launches without a price
    /// (operator_scope.h).
    void publish(ThreadClock& thread);
    int64_t endOf(StreamPoint point) const;

    /// Virtual time as this process's host shows it.
    int64_t stamp(int64_t ns) const {
        return m_cluster.clockOffsets.empty() ? ns : m_cluster.stamp(m_node, ns, kEpochNs);
    }
    int64_t nowStamp();

    Engine engine() { return Engine(*m_arena); }
    bool attached() const { return m_arena != nullptr; }
    /// As a full launch queue does: the host does not run further ahead of the device than the queues are deep.
    void throttle(LocalStream& stream);
    void releaseThread(ThreadClock& thread);
    void leave();
    /// The process ends now: it counts until it is gone, so that virtual time does not run before its end is seen.
    void beginEnding();
    bool anyEnds() const { return m_arena->endings.load(std::memory_order_acquire) != 0; }
    /// Processes that were ending and are gone count no more, once who waited for that has seen it and somebody of
    /// their family has waited for something outside, which perhaps was that; or when nobody does.
    void forgetEnded(bool hasWaited);
    /// The clock with which the process ended whose end is seen under `key` (wait_keys.h), the latest of several, or
    /// kNoClock: who has waited for that goes on no earlier.
    int64_t whenEnded(uint64_t key);

    // Processes that this one forks off begin with its clock. In the parent, before and after; in the child, after.
    struct Child {
        uint32_t index = kNone;
        HostThread* thread = nullptr;
    };
    Child prepareFork(const ThreadClock& thread);
    void forkEnded(Child child, int32_t pid);
    static void beginForked(Arena& arena, Child child);
    /// The same in a program that a process started, in the place that it has prepared for it.
    static void beginStarted(const char* arenaPath, uint32_t index, uint32_t thread);

    // Pipes and connections, by the inode of the end that is read; semaphores between processes, by their place in
    // shared memory.
    /// The thread writes: those that wait for that are back in the bounds before it can be read.
    void tellWritten(uint64_t key, uint64_t bytes, int64_t ns);
    /// The thread has read so many, or kAllBytes: when the newest of it was written, or kNoClock.
    int64_t whenWritten(uint64_t key, uint64_t bytes);
    /// When the first byte was written that is not read yet; kNoClock: nobody told.
    int64_t whenReadable(uint64_t key);
    /// A socket reads one channel and writes another. Both 0 for a socket that nobody has told of.
    struct SocketChannels {
        uint64_t reads = 0, writes = 0;
    };
    void tellSocket(uint64_t socket, SocketChannels channels);
    SocketChannels channelsOf(uint64_t socket);
    void parkOutside(ThreadClock& thread, const char* call, int64_t deadlineNs, std::span<const uint64_t> keys);

    // Threads that are blocked in libc; see threads/waiters.h.
    /// A place for a thread that another one brings into the bounds: one that it has just made, or woken.
    HostThread* makeThread(int64_t startNs);
    void adoptThread(HostThread* shared);
    void discardThread(HostThread* shared);
    /// The thread leaves the bounds until it is woken; not if `isWoken` is set already.
    void park(ThreadClock& thread, ParkKind kind, const char* call, int64_t deadlineNs, int32_t lockOwner,
              const std::atomic<uint32_t>& isWoken);
    /// A thread that waits for a lock in the middle of an operator stays in the bounds, since what it has launched has
    /// no price yet. It has been long: it gets the price that was expected, and may leave.
    void mayLeave(ThreadClock& thread, int32_t lockOwner);
    /// Sets `isWoken`, and brings a parked thread back into the bounds, at `ns` or later.
    void wake(HostThread* thread, int64_t ns, std::atomic<uint32_t>& isWoken);
    /// The thread goes on, no earlier than `wakeNs`.
    void unpark(ThreadClock& thread, int64_t wakeNs);
    /// A parked thread's real time is up: waits until nobody can wake it any more before `deadlineNs`. False: somebody
    /// did.
    bool reachDeadline(ThreadClock& thread, int64_t deadlineNs, const std::atomic<uint32_t>& isWoken);
    /// True when nothing of the job moves, and nothing could: virtual time does not run.
    bool standsStill();
    /// The real clock woke a parked thread that observes.
    void observe(ThreadClock& thread);
    /// Waits until no other thread of the process can act before this one, nor one of its family whose answer another
    /// thread of the process waits for. What follows happens in the order of virtual time, whatever the order in real
    /// time.
    void takeTurn(ThreadClock& thread) {
        if (thread.shared->process == m_index && (severalAct() || (familyActs() && awaitsFamily()))) awaitTurn(thread);
    }
    /// The same among all processes that were forked from one another: before something goes to another process.
    void takeTurnInFamily(ThreadClock& thread);
    /// The thread has learnt of something that happened at `ns`: it goes on then at the earliest, and behind the timed
    /// waits of its process that end before.
    void goOnAt(ThreadClock& thread, int64_t ns);
    bool severalAct() { return sharedProcess().active.load(std::memory_order_acquire) > 1; }
    /// Other processes of the family have active threads.
    bool familyActs() {
        const Process& family = m_arena->processes[sharedProcess().family];
        return family.familyActive.load(std::memory_order_acquire) > sharedProcess().active;
    }
    /// Called with the thread's clock when it ends.
    static void tellThreadEndsTo(void (*tell)(int64_t ns));

    void forgetAfterFork();

  private:
    LocalProcess();
    void attach();
    void takePlace(Arena& arena, Child child);
    void placeOnNode();
    void plantPairLinks();
    void describeDevice(LocalDevice& device);
    void registerThread(ThreadClock& thread);
    uint32_t takeThreadSlot();
    HostThread& addThread(uint32_t process, int64_t startNs, int32_t tid);
    void dropThread(HostThread& shared);
    int64_t presentNs() const;
    void parkHere(ThreadClock& thread, ParkKind kind, const char* call, int64_t deadlineNs, int32_t lockOwner);
    void rejoin(ThreadClock& thread);
    void awaitTurn(ThreadClock& thread);
    bool awaitsFamily();
    bool awaitsDeadlineBefore(int64_t ns);
    void nudge();
    void moveOn();
    Process& sharedProcess() { return m_arena->processes[m_index]; }
    std::atomic<uint32_t>& turnWaiters() { return m_arena->processes[sharedProcess().family].turnWaiters; }
    void harvestOne(uint32_t op, int64_t upToNs);
    void reportSpan(OpReport& report, int64_t startNs, int64_t endNs);
    uint32_t takeOp();
    uint32_t takePart();
    void sleepUntilResumed(ThreadClock& thread, SharedLock& lock);

    std::atomic<void (*)(LocalProcess&)> m_sendObservations = nullptr;
    std::atomic<bool> m_hasLeft = false;
    std::mutex m_mutex;
    Cluster m_cluster;
    PriceTable m_prices;
    Arena* m_arena = nullptr;
    uint32_t m_index = kNone;
    const int32_t m_pid;
    int m_rank = -1, m_node = 0;
    uint64_t m_hostKey = 0;
    std::map<int, LocalDevice> m_devices;
    std::vector<std::unique_ptr<LocalStream>> m_streams;
    std::vector<uint32_t> m_freeOps, m_freeParts;
    uint32_t m_nextOp = 0, m_nextPart = 0, m_newestOp = 0;
    std::deque<OpReport> m_reports;    ///< by op; grows with the ops that were ever in use
    std::vector<StreamPoint> m_order;  ///< the newest submissions, a ring
    uint64_t m_submitted = 0, m_roomUntil = kProcessDepth;
};

}  // namespace rankscope::vgpu

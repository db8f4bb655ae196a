// SPDX-License-Identifier: Apache-2.0
// What all processes of a virtual job share: one sparse mapping, plain structs, indices instead of pointers.
// Everything but the atomics is read and written under Arena::lock only, unless a comment says otherwise.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reference/vgpu/engine/looked_time.h"

namespace rankscope::vgpu {

inline constexpr uint32_t kNone = 0xffffffffu;
inline constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
/// Every virtual job starts at this instant: 2026-01-01 00:00:00 UTC in ns.
inline constexpr int64_t kEpochNs = 1767225600000000000;

inline constexpr uint32_t kMaxProcesses = 4096;
inline constexpr uint32_t kMaxThreads = 1u << 16;    // a rank of PyTorch has some sixty
inline constexpr uint32_t kMaxDevices = 4096;        // one a process
inline constexpr uint32_t kMaxStreams = 1u << 15;    // eight a process
inline constexpr uint32_t kMaxComms = 1u << 14;      // four a process
inline constexpr uint32_t kMaxMembers = 1u << 21;    // five hundred communicators of all ranks
inline constexpr uint32_t kMaxTransfers = 1u << 21;  // an all-to-all of 1,024 ranks has a million
inline constexpr uint32_t kMaxExchanges = 1u << 21;
inline constexpr uint32_t kOpsPerProcess = 1u << 14;  // power of two: rings are masked
inline constexpr uint32_t kPartsPerProcess = 1u << 18;
inline constexpr uint32_t kHeapEntries = 1u << 18;
inline constexpr uint32_t kStreamHistory = 2048;  // power of two
inline constexpr uint32_t kStreamDepth = 1024;  ///< a stream takes this many unfinished operations, then the host waits
inline constexpr uint32_t kProcessDepth = 12000;  ///< and so many all streams of a process together
inline constexpr uint32_t kMaxWaits = 32;
inline constexpr uint32_t kTransferBuckets = 64;
inline constexpr uint32_t kMaxPipes = 512;
inline constexpr uint32_t kMaxSocketEnds = 1024;
inline constexpr uint32_t kMessagesPerChannel = 64;  ///< unread ones; older ones count as sent with the next
inline constexpr uint32_t kMaxWaitKeys = 8;
inline constexpr uint32_t kMaxEndKeys = 64;    // a worker of a loader holds an end of each earlier worker's
inline constexpr uint32_t kMaxPairLinks = 32;  // one bit each in Comm::ringPairs

enum class OpKind : uint8_t { none, kernel, copy, memset, record, wait, transfer, host };
enum class OpState : uint8_t { queued, running, done };

/// One operation of a stream. Its process fills it, the engine runs it, its process takes it back.
struct Op {
    OpKind kind;
    OpState state;
    uint8_t contended;  ///< a compute kernel: slowed while a transfer is resident on its device
    uint32_t stream;
    uint32_t next;       ///< next op of the stream, index into the process's ops
    uint64_t seq;        ///< position in its stream, from 1
    int64_t readyNs;     ///< host time of the call + launch latency
    int64_t workNs;      ///< duration at full rate
    uint32_t depStream;  ///< wait: goes on once that stream has finished depSeq
    uint64_t depSeq;
    uint32_t firstPart, pendingParts;
    double remainingNs, rate;
    int64_t updatedNs;
    int64_t startNs, endNs;
};

enum class TransferKind : uint8_t {
    allReduce,
    allGather,
    reduceScatter,
    broadcast,
    reduce,
    allToAll,
    gather,
    scatter,
    p2p
};

/// An operation's share in a transfer: its membership in a collective, or one send or receive.
struct Part {
    uint32_t process, op, next;  ///< next part of the op
    uint32_t nextOfTransfer;
    uint32_t comm;
    uint32_t member;  ///< my rank in the communicator
    TransferKind kind;
    uint8_t isSend;
    uint32_t peer;                   ///< p2p
    uint64_t key;                    ///< collective: its number in the communicator; p2p: number of this pair
    uint64_t fingerprint;            ///< must agree between the members, else the transfer never starts
    int64_t latencyNs;               ///< alpha part
    double busBytes;                 ///< bytes at the rate of the bus bandwidth
    double efficiency;               ///< share of the link rate the protocol and algorithm reach
    double networkShare;             ///< of the bus bytes, over the NICs of a node
    double chunkBytes;               ///< what a ring passes on per hop, in all channels together; 0: no ring
    int64_t flowBeginNs, flowEndNs;  ///< the bytes flow; 0: there were none
    double leadBytes;                ///< the member leaves when the flow has this much left (a ring with a slow edge)
};

struct Transfer {
    uint32_t inUse, comm, next;  ///< next open transfer of the communicator, in its bucket
    uint64_t key;
    uint32_t src, dst;  ///< p2p
    TransferKind kind;
    uint8_t flowing, mismatched;
    uint32_t expected, arrived, firstPart, lowestMember;
    int64_t lastArrivalNs;
    uint64_t fingerprint;
    int64_t latencyNs;
    double busBytes, efficiency, networkShare, chunkBytes;
    double nextLeadBytes;  ///< with this much left the next members leave; 0: all the others, at the end
    double remaining, rate;
    int64_t updatedNs;
    int64_t dueNs, scheduledNs;  ///< end at the present rate; time of its event, which may be earlier
    uint32_t portChanges;        ///< p2p: of both its ports when the rate was set
    uint32_t version, island;
    uint64_t orderKey;
    uint32_t nextActive, prevActive;
};

enum class StreamState : uint8_t { idle, scheduled, running, blocked };

struct Stream {
    uint32_t process, device, ordinal, nextOfProcess;
    uint32_t head, tail;
    StreamState state;
    uint32_t version;
    int64_t lastEndNs;
    uint32_t firstWaiter, nextWaiter;   ///< streams whose head waits for this one
    std::atomic<uint64_t> finishedSeq;  ///< read without the lock
    std::atomic<int64_t> endNs[kStreamHistory];
};

/// A link end: how many flows use it now, and what it carries in bytes per ns (= GB/s).
struct Port {
    uint32_t flows;
    uint32_t changes;  ///< counts the changes of `flows`
    double rate;
};

/// The link between two ranks when it is slower than its class (a planted fault).
struct PairLink {
    int32_t rankA, rankB;
    double gbps, factor;         ///< its rate, or 0: that share of what the two ends allow
    uint32_t forward, backward;  ///< flows from A to B, from B to A
};

struct Device {
    uint32_t process, ordinal;
    int32_t rank;
    uint64_t hostKey;  ///< equal keys = one virtual node
    uint32_t residentTransfers, residentKernels;
    double slowedRate;     ///< rate of compute beside a transfer
    double slowedTraffic;  ///< rate of transfers beside compute
    Port out, in, nicOut, nicIn;
};

/// running: it may issue work at its bound or later. waiting: for virtual time, inside a call of CUDA or NCCL. parked:
/// it is blocked in a call of libc. observing: a real time-out woke it, or it never acted: it has no bound.
enum class ThreadState : uint32_t { free, running, waiting, parked, observing };
enum class WaitKind : uint32_t { ops, until, comm, turn, timer };

/// What may wake a parked thread, and so whether it still bounds the others.
/// message: a thread of its process that has a clock, so it leaves the bounds. lock: who holds the lock, so it stays in
/// the bounds unless that one waits itself. outside: perhaps a process without a clock, so it stays until the job is
/// quiet.
enum class ParkKind : uint32_t { message, lock, outside };

inline constexpr int32_t kNeverWaits = -1;

struct HostThread {
    std::atomic<ThreadState> state;
    std::atomic<int64_t> boundNs;  ///< nothing this thread issues from now on carries an earlier host time
    std::atomic<uint32_t> futex;
    uint32_t process, nextOfProcess;
    int32_t tid;
    uint32_t number;  ///< in order of birth, within its process: orders threads whose clocks are equal
    WaitKind waitKind;
    ParkKind parkKind;
    int32_t lockOwner;   ///< parked for a lock: the tid of who holds it, or 0; kNeverWaits: it stays in the bounds
    int64_t deadlineNs;  ///< parked: its wait ends then at the latest, or kForever
    std::atomic<uint32_t> timedOut;   ///< and has
    std::atomic<uint32_t> sleepsOut;  ///< it runs, but sleeps until the real clock says what its own says already
    uint64_t waitKeys[kMaxWaitKeys];  ///< parked outside: what ends that (wait_keys.h)
    uint32_t waitKeyCount;
    uint32_t left;      ///< parked outside: the job was quiet, so it has left the bounds
    uint32_t hasActed;  ///< it has issued work or waited for the device
    char inCall[24];    ///< what it is blocked in, for reports
    uint32_t waitCount;
    uint32_t waitStream[kMaxWaits];
    uint64_t waitSeq[kMaxWaits];
    int64_t waitUntilNs;
    uint32_t waitComm;
    int64_t resumeNs;
};

/// What has been written into a pipe, or one direction of a pair of sockets, and when: so that who reads it goes on no
/// earlier. Bytes of threads without a clock count, too, without a time.
struct Channel {
    struct Message {
        uint64_t endByte;
        int64_t sentNs;
    };
    uint64_t key;  ///< of the end that is read, 0: unused
    uint64_t writtenBytes, readBytes;
    uint64_t usedAt;  ///< the least recently used one makes room
    uint32_t firstMessage, messageCount;
    Message messages[kMessagesPerChannel];
};

/// One end of a connection: a socket, by its inode, and the channels that it reads and writes.
struct SocketEnd {
    uint64_t socket;         ///< 0: unused
    uint64_t reads, writes;  ///< keys of channels; one that listens only reads
    uint64_t usedAt;         ///< the least recently used one makes room
};

struct HeapEntry {
    int64_t timeNs;
    uint64_t order;  ///< breaks ties the same way on every machine
    uint32_t kind, index, version, unused;
};

struct alignas(64) Process {  // neighbours share no line of the processor's cache
    std::atomic<uint32_t> alive;
    int32_t pid;
    uint64_t startTime;
    int32_t rank;
    uint32_t island, nextOfIsland;
    uint32_t firstThread, firstStream;
    uint32_t threadsMade;
    uint32_t family;    ///< the process it was forked from, or that one's family: they share pipes
    uint32_t isForked;  ///< its place in the arena may be used again
    /// It has called _exit then (monotonicMs), and counts until who waits for its end has seen it; 0: it lives.
    int64_t endingSinceMs;
    uint32_t isGone;                ///< that was seen
    LookedTime gone;                ///< since when
    uint64_t endKeys[kMaxEndKeys];  ///< what threads wait under that wait for its end (HostThread::waitKeys)
    uint32_t endKeyCount;
    int64_t endNs;                       ///< the clock with which it ended, kept until its place is another's
    std::atomic<uint32_t> active;        ///< threads that run or wait for virtual time; changed by addActive
    std::atomic<uint32_t> familyActive;  ///< in the first process of a family: those of all its processes
    std::atomic<uint32_t> turnWaiters;   ///< threads that wait until they are the earliest of their process
    int64_t lastClockNs;
    std::atomic<uint32_t> dataBell;      ///< rung when data this process waits for has come; a futex
    std::atomic<uint32_t> dataSleepers;  ///< threads that sleep on it
    std::atomic<uint32_t>
        hostSleepers;  ///< threads that wait for virtual time or data: they cannot look for data themselves
    std::atomic<uint64_t> submitted, drained;   ///< ring of op indices, process → engine
    std::atomic<uint64_t> finished, harvested;  ///< ring of op indices, engine → process
    uint32_t heapSize;
    uint32_t firstFlow;  ///< active flows of the island rooted here
    uint32_t flowsDirty;
    uint32_t blocker;   ///< the thread whose bound ended the island's last advance, or kNone
    int64_t blockerNs;  ///< that bound
    int64_t nowNs;
};

/// The large arrays of a process. They are apart: each process looks at all the others, and what it looks at should lie
/// on few pages.
struct Queues {
    uint32_t submission[kOpsPerProcess];
    uint32_t completion[kOpsPerProcess];
    Op ops[kOpsPerProcess];
    Part parts[kPartsPerProcess];
    HeapEntry heap[kHeapEntries];  ///< used while its process is the root of its island
};

struct Member {
    uint32_t process, device;
    int64_t arrivedNs;
    uint32_t joined;  ///< it has come
    uint32_t left;    ///< it has destroyed its handle
    int32_t color, key;
};

struct Comm {
    uint32_t inUse;
    unsigned char id[128];
    uint64_t hash;
    uint32_t size, joined, firstMember;  ///< index into Arena::members
    uint32_t complete, aborted;
    int64_t readyNs;
    uint32_t nodes, smallestNode;          ///< smallestNode: fewest members on one node
    uint32_t pairsForward, pairsBackward;  ///< bit i: the ring uses Arena::pairLinks[i], from A to B or from B to A
    uint32_t railPairs;                    ///< those of them that lead from node to node
    uint32_t openTransfers[kTransferBuckets];
};

/// Rendezvous of the bytes of one collective or message; independent of virtual time.
struct Exchange {
    uint32_t inUse, comm, next;
    uint64_t key;
    uint64_t fingerprint;  ///< members that disagree meet in different exchanges, which stay incomplete
    uint32_t src, dst;
    uint32_t p2p, expectedPosts;
    std::atomic<uint32_t> posts, readersLeft;  ///< these three without the lock
    std::atomic<uint32_t> ready;  ///< all contributions are there; they stay until the last reader has left
    uint64_t slots;   ///< offset of uint64_t[members], contribution offsets, and behind it uint32_t[members]: who is to
                      ///< be told when it is ready
    uint64_t result;  ///< offset of the reduced windows, or 0
};

struct Arena {
    std::atomic<uint64_t> magic;
    pthread_mutex_t lock;      ///< robust
    pthread_mutex_t dataLock;  ///< robust; taken after lock, never before
    int64_t launchNs;          ///< the lookahead: an op starts no earlier than its host time + this
    std::atomic<uint64_t> progress;
    std::atomic<uint64_t> moves;  ///< the part of it that is due to devices and to threads that use them
    int64_t quietSinceMs;         ///< since when nothing moves but for what may come from outside, or 0
    uint64_t quietProgress;
    uint64_t deadlockTold;             ///< after how many moves a stand-still was told of
    std::atomic<uint32_t> deadlocked;  ///< nobody will ever go on: each process ends (deadlock.h)
    uint32_t lateEvents,
        fallbacks;                ///< what makes two runs differ: events before the present, threads that were given up
    int64_t inspectedMs;          ///< when somebody last looked for dead and sleeping processes, on the monotonic clock
    uint64_t profiledRecordings;  ///< of how many recordings by a profiler a process has told the real time
    int64_t profilerShiftNs;      ///< of the newest: from virtual to Unix time
    std::atomic<uint32_t> endings;  ///< processes that are ending: whoever waits looks often whether they are gone
    uint32_t processCount;
    uint32_t threadCount, deviceCount, streamCount, commCount, memberCount;
    uint32_t freeTransfer, transferCount, freeExchange, exchangeCount;
    uint32_t freeThread, freeStream;
    uint32_t pairLinkCount;
    PairLink pairLinks[kMaxPairLinks];
    Channel pipes[kMaxPipes];
    uint64_t pipeUses;  ///< of pipes and sockets' ends: counts, for the least recently used one
    SocketEnd socketEnds[kMaxSocketEnds];
    uint32_t socketEndCount;  ///< how many of them were ever used
    uint32_t openExchanges[kMaxComms][kTransferBuckets];
    HostThread threads[kMaxThreads];
    Device devices[kMaxDevices];
    Comm comms[kMaxComms];
    Member members[kMaxMembers];
    Transfer transfers[kMaxTransfers];
    Exchange exchanges[kMaxExchanges];
    Stream streams[kMaxStreams];
    uint64_t dataUsed;
    uint64_t dataFree[48];  ///< free lists by power of two
    Process processes[kMaxProcesses];
    alignas(4096) Queues queues[kMaxProcesses];  ///< by process
    // followed by the data heap
};

inline constexpr uint64_t kDataBytes = uint64_t{64} << 30;
inline constexpr uint64_t kArenaBytes = sizeof(Arena) + kDataBytes;  // of address space: some 220 GiB, mostly unused
static_assert(uint64_t{kMaxProcesses} * kPartsPerProcess < kNone, "process and index name a part (Engine::arrive)");
static_assert(sizeof(Process) <= 1024, "each process looks at all others: those of a large job lie on few pages");

/// Bucket of a transfer or exchange within its communicator.
inline uint32_t bucketOf(uint64_t key, uint32_t src, uint32_t dst) {
    return static_cast<uint32_t>((key * 31 + src * 7 + dst * 13) % kTransferBuckets);
}

/// So many more threads of the process run or wait for virtual time. Arena::lock is held.
inline void addActive(Arena& arena, Process& process, int32_t change) {
    process.active.fetch_add(static_cast<uint32_t>(change));
    arena.processes[process.family].familyActive.fetch_add(static_cast<uint32_t>(change));
}

/// Prepares zeroed memory as an empty arena.
void initializeArena(Arena& arena, int64_t launchNs);

/// Ends this process with a message: the arena has no room for one more of `what` ("processes").
[[noreturn]] void refuseMore(const char* what, uint32_t most);

/// Wakes who sleeps on `word` when the calling thread has let go of its SharedLock: woken inside, it would run into
/// that lock at once.
void wakeBehindLock(std::atomic<uint32_t>& word);

/// Scoped hold of a robust process-shared mutex. A previous holder's death does not make it unusable.
class SharedLock {
  public:
    explicit SharedLock(pthread_mutex_t& mutex);
    ~SharedLock() { unlock(); }
    SharedLock(const SharedLock&) = delete;
    SharedLock& operator=(const SharedLock&) = delete;
    void lock();
    void unlock();
    /// True while the calling thread holds one, or is about to: a signal handler that would take it waits for itself.
    static bool isHeldHere();
    /// True once when the last holder died inside; what it was doing may be half done.
    bool takeOwnerDied();

  private:
    pthread_mutex_t& m_mutex;
    bool m_held = false;
    bool m_ownerDied = false;
};

/// Maps the arena of the job named `key`, creating it if this is the first process. Never returns null: aborts with a
/// message when shared memory is unusable, since no virtual GPU can exist then.
Arena* attachArena(const char* key, int64_t launchNs, uint32_t& processIndex);

/// The place of a process that is about to be forked off, which begins with a thread at `startNs`; kNone if there is
/// none left. Arena::lock is held.
uint32_t reserveProcess(Arena& arena, uint32_t parent);
/// In a forked process: its own hold on the parent's arena.
void reopenArena();
/// Where the arena of this process lies, for a program that is to join it.
const char* arenaPath();
/// Maps an arena that a living process of the job has told of; null where that cannot be.
Arena* joinArena(const char* path);

/// Removes the arena's name if no live process is left.
void detachArena(Arena* arena, uint32_t processIndex);

/// While it lives, a thread of the process sleeps in a call: who has data for the process must wake its helper.
class HostSleep {
  public:
    explicit HostSleep(Process& process) : m_process(process) { process.hostSleepers.fetch_add(1); }
    ~HostSleep() { m_process.hostSleepers.fetch_sub(1); }
    HostSleep(const HostSleep&) = delete;
    HostSleep& operator=(const HostSleep&) = delete;

  private:
    Process& m_process;
};

/// Of the real monotonic clock.
int64_t monotonicMs();

bool processLives(int32_t pid, uint64_t startTime);
uint64_t processStartTime(int32_t pid);
/// As the system says it (proc(5)): 'R' runs or is to run, 'S' sleeps; 'X': there is no such thread.
char threadStateOf(int32_t pid, int32_t tid);

void futexWait(std::atomic<uint32_t>& word, uint32_t expected, int timeoutMs);
void futexWake(std::atomic<uint32_t>& word, int count = 1 << 30);

}  // namespace rankscope::vgpu

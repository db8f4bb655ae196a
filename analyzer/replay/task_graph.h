// SPDX-License-Identifier: Apache-2.0
// Holds what a job did, as tasks and what each had to wait for; times are left out. Simulating it (simulate.h) gives
// them back.
//
// A task belongs to a lane: a host thread of a rank, or a stream of a rank. It starts when
//   - the task before it in its lane has ended, and `leadNs` after that (host: work between two calls; device: the gap
//     between dependent kernels), and
//   - every edge says so: `delayNs` after the end, or after the start, of another task.
// It ends `durationNs` later. That is all; a collective is made of it, too:
//
//   lane of rank 0   … ─ arrival ──────┐        ┌── transfer ─ …
//   lane of rank 1   … ──── arrival ───┴─ join ─┴── transfer ─ …
//
//   arrival    duration 0, starts when the kernel starts
//   join       no lane, when the last one is there
//   transfer   the rest of the kernel
//
// Sends and receives have no join task: a kernel's transfer has an edge from the arrival of each peer's kernel. Of
// several messages each joins on its own two kernels: what one takes longer than the kernel's shortest is the delay of
// its edge, and the longest of these the transfer's lead (its own arrival comes last).
#pragma once

#include <algorithm>
#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

#include "analyzer/facts/rank_events.h"
#include "analyzer/facts/shared_list.h"

namespace rankscope::replay {

using facts::SharedList;
using TaskId = uint32_t;
inline constexpr TaskId kNoTask = UINT32_MAX;

enum class TaskKind : uint8_t {
    boundary,      // what happened before the recording or the sample: only says when its lane is free
    host,          // a call that puts work on the device; the host's work in front of it is its lead
    blockingCall,  // a call that waits for the device; its duration is what is left of it when the device is done
    kernel,        // computes
    copy,
    set,
    arrival,   // a rank enters its NCCL kernel
    join,      // all members of a collective have arrived
    transfer,  // what is left of an NCCL kernel when the last one it waits for has arrived
    stepMark,  // a step of a rank begins, or its last one ends: no lane
};

enum class WaitKind : uint8_t {
    launch,    // put on the device by a host call: after its start
    event,     // cudaStreamWaitEvent, or the order inside a CUDA graph
    blocking,  // a host call waits for device work
    peer,      // arrivals of a collective, a send or a receive
    mark,      // of a step
};

/// Says that `from` must be over (or have begun) for `delayNs`.
struct Edge {
    TaskId from = kNoTask;
    uint32_t delayNs : 27 = 0;    // up to kLongestDelayNs
    bool afterStart : 1 = false;  // of `from`, instead of its end
    WaitKind kind : 4 = WaitKind::launch;

    static constexpr int64_t kLongestDelayNs = (int64_t{1} << 27) - 1;  // 134 ms
    /// Cuts what is longer.
    void setDelay(int64_t ns) { delayNs = std::clamp<int64_t>(ns, 0, kLongestDelayNs) & kLongestDelayNs; }
};
static_assert(sizeof(Edge) == 8);

struct TaskInfo {
    uint32_t lane : 24 = 0;  // index into lanes; kNoLane
    TaskKind kind : 8 = TaskKind::host;
    uint32_t row = 0;     // kernel, arrival, transfer: kernel.id; copy, set: id of memcpy, memset; host, blockingCall:
                          // api_call.id; join: collective.id
    uint32_t detail = 0;  // kernel: index into kernelKeys; arrival, transfer, join: index into exchanges; host,
                          // blockingCall: name id of the call; else 0
    int32_t step = -1;    // number of the step that its launch belongs to; -1 before the first
};
static_assert(sizeof(TaskInfo) == 16);
inline constexpr uint32_t kNoLane = (uint32_t{1} << 24) - 1;  // also the mask of a lane

struct Lane {
    int rank = 0;
    bool host = false;
    int32_t id = 0;  // row of thread (the first of those that take turns) or stream
};

/// Describes one member's part of a collective, or one side of a message.
struct ExchangeMember {
    int rank = 0;
    TaskId arrival = kNoTask;
    TaskId transfer = kNoTask;
};

/// Describes a collective, or one message between two ranks: what an edit needs to price it otherwise. It is packed:
/// jobs with experts send a message for each third task.
struct Exchange {
    int64_t bytes = -1;  // as collective.bytes, p2p.bytes; -1 unknown
    uint32_t id = 0;     // row of collective or p2p
    uint32_t communicatorId = 0;
    store::Op op : 4 = store::Op::unknown;  // a message: send
    store::DataType dataType : 4 = store::DataType::unknown;
    store::Algorithm algorithm : 3 = store::Algorithm::unknown;
    store::Protocol protocol : 2 = store::Protocol::unknown;
    bool grouped : 1 = false;   // a message that is part of an all-to-all of its kernels: they wait for each other by
                                // one join instead of an edge for each pair
    uint32_t members : 18 = 0;  // up to kMostMembers
    int step = -1;
    TaskId join = kNoTask;     // of a collective; messages have none
    uint32_t firstMember = 0;  // into members; of a message first the sender, then the receiver

    static constexpr uint32_t kMostMembers = (uint32_t{1} << 18) - 1;
    bool message() const { return op == store::Op::send; }
};
static_assert(sizeof(Exchange) == 32);

/// A step of a rank begins here, or (closes) its last one ends.
struct StepMark {
    int rank = 0;
    int step = 0;
    bool closes = false;
    TaskId task = kNoTask;
};

/// Tasks are numbered so that everything a task waits for has a smaller number. About 50 bytes a task, edges included;
/// of a copy 12, as long as it differs in durations and leads alone.
struct TaskGraph {
    std::vector<int64_t> durationNs;  // by task
    std::vector<uint32_t> leadNs;     // by task; without a task before it in its lane: from the origin of time
    SharedList<TaskId> before;        // by task: the one before it in its lane, kNoTask: none
    SharedList<uint32_t> firstEdge;   // by task, and one more: its edges are [firstEdge[t], firstEdge[t + 1])
    SharedList<Edge> edges;
    SharedList<TaskInfo> info;  // by task

    std::vector<Lane> lanes;
    std::vector<facts::KernelKey> kernelKeys;
    SharedList<Exchange> exchanges;
    SharedList<ExchangeMember> members;
    std::vector<StepMark> marks;  // by (rank, step, closes)

    size_t size() const { return durationNs.size(); }
    /// One is a copy of the other, or both are of a third, and they differ in durations and leads alone: tasks have the
    /// same numbers in both. Lanes, names of kernels and marks change only where the lists do.
    bool differsInTimesAlone(const TaskGraph& other) const {
        return before.data() == other.before.data() && firstEdge.data() == other.firstEdge.data() &&
               edges.data() == other.edges.data() && info.data() == other.info.data() &&
               exchanges.data() == other.exchanges.data() && members.data() == other.members.data();
    }
    std::span<const Edge> edgesOf(TaskId task) const {
        return {edges.data() + firstEdge[task], edges.data() + firstEdge[task + 1]};
    }
    auto edgesOf(TaskId task, WaitKind kind) const {
        return edgesOf(task) | std::views::filter([kind](const Edge& edge) { return edge.kind == kind; });
    }
    std::span<const ExchangeMember> membersOf(const Exchange& exchange) const {
        return {members.data() + exchange.firstMember, exchange.members};
    }
    int rankOf(TaskId task) const { return info[task].lane == kNoLane ? -1 : lanes[info[task].lane].rank; }
    bool onHost(TaskId task) const { return info[task].lane != kNoLane && lanes[info[task].lane].host; }
    /// The transfer of the member that takes longest: with a slow edge the others may leave a ring earlier.
    int64_t longestNs(const Exchange& exchange) const {
        int64_t longest = 0;
        for (const ExchangeMember& member : membersOf(exchange))
            longest = std::max(longest, durationNs[member.transfer]);
        return longest;
    }
};

}  // namespace rankscope::replay

// SPDX-License-Identifier: Apache-2.0
// Takes a round of collectives out of a task graph and sends its bytes in other buckets.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "analyzer/edits/gradient_rounds.h"
#include "analyzer/replay/graph_draft.h"

namespace rankscope::edits {

class TrialGraph;
struct EditEffect;

/// The job with its gradients in other buckets, or the same ones earlier. For ddp, ZeRO-1 and ZeRO-2 (whose all-gathers
/// of updated parameters follow the same buckets) and the replicas of larger layouts; sharded parameters have no
/// buckets. `mebibytes`: cap of a bucket, as DDP's bucket_cap_mb; without it the present buckets stay. `overlap`:
/// buckets that are sent when backward is over leave as soon as their gradients are there. Throws EditError.
TaskGraph inBuckets(std::optional<double> mebibytes, bool overlap, const TrialGraph& of, EditEffect& effect);

/// What a round becomes.
struct NewBuckets {
    std::vector<double> ends;                     // cumulative sizes, rising; the last one is the round's size
    std::vector<std::vector<double>> transferNs;  // by member, by bucket
    std::vector<std::vector<int64_t>>
        ready;  // by member, by bucket: index into ComputeLane::kernels of the kernel that it waits for
    std::vector<std::vector<int64_t>> uses;  // by member, by bucket: the kernel that waits for it; empty: what waited
                                             // for the present buckets goes on doing so
    bool aside = false;                      // buckets that travel on the compute stream get one of their own
    bool held = false;                       // see Resend::hold()
};

/// Sends rounds anew, all in one draft: add() each of them, then finish().
class Resend {
  public:
    Resend(const TaskGraph& graph, const Analysis& analysis, const LaunchIndex& index);

    /// Calls of the host move with their buckets, each at the median cost of the round's present calls. What waited for
    /// an old bucket waits for the new one that has its last byte, or, where that leaves later, for the last one
    /// before. Calls of the host that waited for room in the launch queue go on: fewer buckets do not fill it. Throws
    /// EditError when the calls are not known one by one (CUDA graphs).
    void add(const GradientRound& round, const NewBuckets& buckets);
    /// ZeRO updates the parameters of a bucket in front of its gather, by the same kernels for each: buckets that
    /// travel together are updated together, by one launch of each of these kernels. `ready`: by new bucket, as in
    /// NewBuckets. Kernels that differ from bucket to bucket stay.
    void mergeUpdates(const RoundMember& member, const std::vector<int64_t>& ready);
    /// Kernels wait for a round that stays as it is one by one: its transfers[i] is awaited by the kernel uses[i]
    /// (index into ComputeLane::kernels) and by no other.
    void awaitAt(const RoundMember& member, const std::vector<int64_t>& uses);
    TaskGraph finish() &&;

  private:
    struct Wait {
        TaskId to, from;
        int64_t delayNs;
    };
    /// A new bucket of a rank.
    struct Sent {
        TaskId anchor = kNoTask;  // the host task that its call follows
        TaskId kernel = kNoTask;  // that makes its last gradients
        TaskId transfer = kNoTask;
    };
    struct Replaced {
        size_t round = 0, bucket = 0;  // in m_sent: what has its last byte
        bool fewer = false;            // the round travels in fewer buckets now
        bool usesKnown = false;        // the new ones have uses
    };
    struct CallCosts : LaunchCosts {
        int64_t behindNs = 0;  // in the lead of what the host does next
    };
    uint32_t laneAside(int rank, int64_t communicator);
    CallCosts typicalOf(const RoundMember& member) const;
    /// What the host does behind these calls more than between others of the round: it records events.
    int64_t behindNs(const std::vector<TaskId>& calls) const;
    /// A framework may keep two buffers: what computes behind a bucket waits until the bucket before it was sent. And
    /// its host may wait for the last one before it goes on. DeepSpeed's overlap_comm does both. `transfers`: of the
    /// member's new buckets, which leave behind the kernels `ready`.
    void hold(const ComputeLane& compute, const std::vector<int64_t>& ready, const std::vector<TaskId>& transfers,
              int64_t delayNs);
    void mergeKernels(const std::vector<TaskId>& kernels, size_t first, size_t last, int64_t emptyNs);
    bool waitsForRoom(TaskId to, const Edge& edge) const;
    /// The transfer that `to` waits for now; kNoTask: none.
    TaskId awaitedNow(TaskId to, const Replaced& now) const;
    /// The last task of the graph on a stream that was launched before a call, from `place` on.
    TaskId givenBefore(TaskId place, TaskId call) const;
    void takeLead(TaskId task, int64_t leadNs);
    /// What the host did beyond such a call stays.
    void takeCall(TaskId call, const LaunchCosts& costs);
    void takeOut(const GradientRound& round, const std::vector<CallCosts>& typical);

    const TaskGraph& m_graph;
    const Analysis& m_analysis;
    const LaunchIndex& m_index;
    GraphDraft m_draft;
    std::vector<TaskId> m_next;                       // by task of the graph: on its lane
    std::vector<std::vector<Sent>> m_sent;            // by round and rank: its buckets
    std::vector<bool> m_gone;                         // by task of the graph
    std::unordered_map<TaskId, Replaced> m_replaced;  // old arrivals and transfers
    std::set<TaskId> m_awaitedElsewhere;              // transfers that stay, and which other kernels wait for now
    std::vector<Wait> m_added;
    std::vector<uint32_t> m_goneExchanges;
    std::map<std::pair<int, int64_t>, uint32_t> m_lanesAside;  // by rank and communicator
    std::map<TaskId, TaskId> m_lastBehind;                     // by kernel's call: the last call put in behind it
};

}  // namespace rankscope::edits

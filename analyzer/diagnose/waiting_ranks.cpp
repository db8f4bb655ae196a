// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/waiting_ranks.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>

#include "analyzer/text/lists.h"

namespace rankscope::diagnose {
namespace {

using facts::EndedCall;
using facts::JobEnd;
using facts::MemberCounts;
using facts::RankEnd;

/// What the members call together: a collective, or the two halves of a message.
struct Instance {
    std::vector<size_t> calls;  // unfinished ones
    std::vector<int> absent;    // who has not called it
    std::vector<int> unbegun;   // who has, and whose device has not begun what others' have
    size_t atHead = 0;          // of `calls`
};

/// The unfinished calls of a rank that run one after the other.
struct Queue {
    std::vector<size_t> calls;
    size_t next = 0;      // the first that has not ended
    size_t admitted = 0;  // from `next` on, those that may run: one call, or one group
    bool stands = false;  // its device ends nothing
};

struct PendingCall {
    const EndedCall* call = nullptr;
    int rank = 0;
    size_t queue = 0;
    size_t instance = 0;
    bool ended = false, atHead = false;
};

bool hasCalled(const MemberCounts& counts, int rank, const EndedCall& call, int caller) {
    if (!call.isMessage()) return text::valueAt(counts.called, rank) > call.seq;
    const bool sends = call.op == store::Op::send;
    return text::valueAt(sends ? counts.received : counts.sent,
                         sends ? std::pair(caller, rank) : std::pair(rank, caller)) > call.seq;
}

std::vector<int> othersIn(const MemberCounts& counts, const EndedCall& call, int caller) {
    if (call.isMessage()) return call.peer >= 0 && call.peer != caller ? std::vector{call.peer} : std::vector<int>{};
    std::vector<int> others;
    for (const auto& [rank, called] : counts.called)
        if (rank != caller) others.push_back(rank);
    return others;
}

/// Calls of one key run one after the other: those of a stream, or where that is not told those of a communicator.
/// PyTorch gives each pair of ranks that exchanges single messages a communicator and a stream of its own.
using QueueKey = std::tuple<int64_t, int64_t, int>;

QueueKey queueOf(const EndedCall& call, bool isRecorder) {
    if (call.stream >= 0) return {call.stream, -1, -1};
    return {-1, call.communicator, isRecorder && call.isMessage() && call.group < 0 ? call.peer : -1};
}

/// Others' devices ended it, so that this one began it, too.
bool wasEntered(const EndedCall& call, const MemberCounts& counts) {
    return !call.isMessage() && store::isSynchronizing(call.op) && counts.done > call.seq;
}

/// Lets everything end that nobody holds up: kernels that ended without being delivered, and those that would have run
/// next. What is left at the head of its queue waits.
class Progress {
  public:
    explicit Progress(const JobEnd& end) : m_end(end) {
        for (const RankEnd& rank : end.ranks) addRank(rank);
        if (end.isRecorder)
            for (Instance& instance : m_instances) findUnbegun(instance);
        for (size_t queue = 0; queue < m_queues.size(); ++queue) admit(queue);
        while (!m_ready.empty()) {
            const size_t instance = m_ready.front();
            m_ready.pop_front();
            for (const size_t call : m_instances[instance].calls) m_calls[call].ended = true;
            for (const size_t call : m_instances[instance].calls) admit(m_calls[call].queue);
        }
    }

    /// The waits of all calls that are held up at the head of their queues.
    std::vector<Wait> waits() const {
        std::vector<Wait> waits;
        for (const PendingCall& pending : m_calls) {
            if (pending.ended || !pending.atHead) continue;
            const Instance& instance = m_instances[pending.instance];
            for (const int rank : instance.absent)
                waits.push_back({pending.rank, rank, *pending.call, Wait::Why::missing});
            if (!instance.absent.empty()) continue;
            if (pending.call->begunNs)
                for (const int rank : instance.unbegun)
                    if (rank != pending.rank) waits.push_back({pending.rank, rank, *pending.call, Wait::Why::unbegun});
            for (const size_t other : instance.calls)
                if (!m_calls[other].atHead)
                    waits.push_back({pending.rank, m_calls[other].rank, *pending.call, Wait::Why::behind});
        }
        return waits;
    }

    /// Where starts are seen at all, one that others' devices have made and a member's has not is that member's.
    void findUnbegun(Instance& instance) const {
        const auto isBegun = [&](size_t call) { return m_calls[call].call->begunNs.has_value(); };
        if (std::ranges::none_of(instance.calls, isBegun)) return;
        for (const size_t call : instance.calls)
            if (const RankEnd* rank = m_end.find(m_calls[call].rank);
                !isBegun(call) && rank->seesBegins && !rank->isCut && !rank->isOld)
                instance.unbegun.push_back(rank->rank);
    }

    const std::map<int, EndedCall>& standing() const { return m_standing; }

    /// Of a recorder, what each rank's first call that did not end waits for. It is what the rank stands in: a job's
    /// streams wait for each other, and a call that all have made and nobody ended shows that one of them does.
    std::vector<Wait> firstWaits() const {
        std::vector<Wait> waits;
        for (const auto& [rank, first] : m_firstOf) {
            if (m_standing.contains(rank)) continue;
            const EndedCall& call = *m_calls[first].call;
            const Instance& instance = m_instances[m_calls[first].instance];
            const auto add = [&](int on, Wait::Why why) {
                if (on != rank) waits.push_back({rank, on, call, why});
            };
            for (const int other : instance.absent) add(other, Wait::Why::missing);
            bool anyBehind = !instance.absent.empty();
            for (const size_t other : instance.calls) {
                const bool stands = m_standing.contains(m_calls[other].rank);
                if (stands || (instance.absent.empty() && !runsFirst(other))) {
                    add(m_calls[other].rank, stands ? Wait::Why::behind : Wait::Why::behindFirst);
                    anyBehind = true;
                }
            }
            if (anyBehind) continue;
            for (const int other : instance.unbegun)
                if (call.begunNs) add(other, Wait::Why::unbegun);
            if (!instance.unbegun.empty()) continue;
            for (const size_t other : instance.calls) add(m_calls[other].rank, Wait::Why::stuck);
        }
        return waits;
    }

  private:
    void addRank(const RankEnd& rank) {
        std::map<QueueKey, size_t> queues;
        const size_t firstQueue = m_queues.size();
        for (const EndedCall& call : rank.unfinished) {
            const MemberCounts& counts = m_end.communicators.at(call.communicator);
            // A capture lacks ends that were not delivered any more; a recorder does not.
            if (!m_end.isRecorder && !call.isMessage() && counts.ended.contains(call.seq)) continue;
            if (m_end.isRecorder && !rank.isCut && !rank.isOld && wasEntered(call, counts))
                m_standing.try_emplace(rank.rank, call);
            const auto [queue, isNew] = queues.try_emplace(queueOf(call, m_end.isRecorder), m_queues.size());
            if (isNew) m_queues.emplace_back();
            m_firstOf.try_emplace(rank.rank, m_calls.size());
            m_queues[queue->second].calls.push_back(m_calls.size());
            const size_t instance = instanceOf(call, rank.rank, counts);
            m_instances[instance].calls.push_back(m_calls.size());
            m_calls.push_back({&call, rank.rank, queue->second, instance});
        }
        if (m_standing.contains(rank.rank))
            for (size_t queue = firstQueue; queue < m_queues.size(); ++queue) m_queues[queue].stands = true;
    }

    /// It is the first call of its rank that has not ended, or in a group with that.
    bool runsFirst(size_t index) const {
        const PendingCall& pending = m_calls[index];
        const EndedCall& first = *m_calls[m_firstOf.at(pending.rank)].call;
        return pending.call == &first || (first.group >= 0 && pending.call->group == first.group &&
                                          pending.call->communicator == first.communicator);
    }

    size_t instanceOf(const EndedCall& call, int rank, const MemberCounts& counts) {
        const int source = !call.isMessage() ? -1 : call.op == store::Op::send ? rank : call.peer;
        const int target = !call.isMessage() ? -1 : call.op == store::Op::send ? call.peer : rank;
        const auto [at, isNew] =
            m_instanceOf.try_emplace({call.communicator, call.seq, source, target}, m_instances.size());
        if (!isNew) return at->second;
        Instance instance;
        for (const int other : othersIn(counts, call, rank))
            if (!hasCalled(counts, other, call, rank)) instance.absent.push_back(other);
        // Members without a recording: nothing tells whether they came, unless the group was never seen to work.
        if (!call.isMessage() && counts.missing > 0 && counts.done == 0)
            for (const RankEnd& silent : m_end.ranks)
                if (!silent.recorded) instance.absent.push_back(silent.rank);
        // Who wrote no dump, or only a part of one, may be missing where everybody else has come and nobody got on.
        if (m_end.isRecorder && !call.isMessage() && instance.absent.empty() && counts.done <= call.seq)
            instance.absent = counts.untold;
        m_instances.push_back(std::move(instance));
        return at->second;
    }

    /// Takes what has ended off the queue and lets what is next on it run.
    void admit(size_t index) {
        Queue& queue = m_queues[index];
        while (queue.next < queue.calls.size() && m_calls[queue.calls[queue.next]].ended) {
            ++queue.next;
            if (queue.admitted > 0) --queue.admitted;
        }
        if (queue.stands || queue.admitted > 0 || queue.next == queue.calls.size()) return;
        const int64_t group = m_calls[queue.calls[queue.next]].call->group;
        do {
            PendingCall& pending = m_calls[queue.calls[queue.next + queue.admitted++]];
            pending.atHead = true;
            Instance& instance = m_instances[pending.instance];
            if (++instance.atHead == instance.calls.size() && instance.absent.empty() && instance.unbegun.empty())
                m_ready.push_back(pending.instance);
        } while (group >= 0 && queue.next + queue.admitted < queue.calls.size() &&
                 m_calls[queue.calls[queue.next + queue.admitted]].call->group == group);
    }

    const JobEnd& m_end;
    std::vector<PendingCall> m_calls;
    std::vector<Queue> m_queues;
    std::vector<Instance> m_instances;
    std::map<std::tuple<int64_t, int64_t, int, int>, size_t> m_instanceOf;
    std::deque<size_t> m_ready;
    std::map<int, EndedCall> m_standing;  // by rank
    std::map<int, size_t> m_firstOf;      // first call that has not ended, by rank
};

using WaitsByRank = std::map<int, std::vector<Wait>>;

/// Whether `from` leads to `to`, over one wait or more.
bool leadsTo(const WaitsByRank& waits, int from, int to) {
    std::set<int> seen;
    std::deque<int> open{from};
    while (!open.empty()) {
        const auto at = waits.find(open.front());
        open.pop_front();
        if (at == waits.end()) continue;
        for (const Wait& wait : at->second) {
            if (wait.on == to) return true;
            if (seen.insert(wait.on).second) open.push_back(wait.on);
        }
    }
    return false;
}

/// The first wait of each rank for each other.
WaitsByRank firstPerPair(const std::vector<Wait>& waits) {
    std::map<std::pair<int, int>, const Wait*> first;
    for (const Wait& wait : waits) first.try_emplace({wait.waiter, wait.on}, &wait);
    WaitsByRank byRank;
    for (const auto& [ranks, wait] : first) byRank[ranks.first].push_back(*wait);
    return byRank;
}

}  // namespace

WaitingRanks::WaitingRanks(const JobEnd& end) {
    const Progress progress(end);
    if (!end.isRecorder) {
        m_waits = firstPerPair(progress.waits());
        return;
    }
    m_standing = progress.standing();
    std::vector<Wait> waits = progress.firstWaits();
    const WaitsByRank first = firstPerPair(waits);
    // Calls behind the first may have a cause of their own, but not in ranks that themselves wait for the first.
    for (const Wait& wait : progress.waits())
        if (!leadsTo(first, wait.on, wait.waiter)) waits.push_back(wait);
    m_waits = firstPerPair(waits);
}

const EndedCall* WaitingRanks::standsIn(int rank) const {
    const auto at = m_standing.find(rank);
    return at == m_standing.end() ? nullptr : &at->second;
}

/// Of calls that all their members made, which may be on their way, only those are roots that others stand behind.
bool WaitingRanks::isHeldUpFor(const std::vector<int>& ranks) const {
    return std::ranges::any_of(m_waits, [&](const auto& waiter) {
        return std::ranges::any_of(waiter.second, [&](const Wait& wait) {
            return text::contains(ranks, wait.on) &&
                   (wait.why != Wait::Why::stuck || !text::contains(ranks, wait.waiter));
        });
    });
}

const std::vector<Wait>& WaitingRanks::of(int rank) const {
    static const std::vector<Wait> kNone;
    const auto at = m_waits.find(rank);
    return at == m_waits.end() ? kNone : at->second;
}

std::vector<std::vector<int>> WaitingRanks::roots() const {
    // What each rank's waiting leads to. A root is a set of ranks that lead to each other and to nobody else.
    std::map<int, std::set<int>> leadsTo;
    std::set<int> nodes;
    for (const auto& [rank, waits] : m_waits) {
        std::deque<int> open{rank};
        std::set<int>& reached = leadsTo[rank];
        nodes.insert(rank);
        while (!open.empty()) {
            for (const Wait& wait : of(open.front()))
                if (reached.insert(wait.on).second) open.push_back(wait.on);
            open.pop_front();
        }
        nodes.insert(reached.begin(), reached.end());
    }
    std::vector<std::vector<int>> roots;
    for (const int rank : nodes) {
        const std::set<int>& reached = leadsTo[rank];
        const bool isRoot = std::ranges::all_of(
            reached, [&](int other) { return leadsTo[other] == reached && (other == rank || reached.contains(rank)); });
        if (!isRoot || (!reached.empty() && *reached.begin() != rank)) continue;
        std::vector<int> root = reached.empty() ? std::vector{rank} : std::vector<int>(reached.begin(), reached.end());
        if (isHeldUpFor(root)) roots.push_back(std::move(root));
    }
    return roots;
}

std::vector<int> WaitingRanks::behind(const std::vector<int>& root) const {
    std::vector<int> result;
    for (const auto& [rank, waits] : m_waits)
        if (!text::contains(root, rank) && !chain(rank, root).empty()) result.push_back(rank);
    return result;
}

std::vector<Wait> WaitingRanks::chain(int rank, const std::vector<int>& root) const {
    std::map<int, Wait> cameBy;
    std::deque<int> open{rank};
    while (!open.empty()) {
        const int at = open.front();
        open.pop_front();
        for (const Wait& wait : of(at)) {
            if (wait.on == rank || !cameBy.try_emplace(wait.on, wait).second) continue;
            if (!text::contains(root, wait.on)) {
                open.push_back(wait.on);
                continue;
            }
            std::vector<Wait> chain{wait};
            while (chain.front().waiter != rank) chain.insert(chain.begin(), cameBy.at(chain.front().waiter));
            return chain;
        }
    }
    return {};
}

}  // namespace rankscope::diagnose

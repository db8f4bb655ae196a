// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/waiting_ranks.h"

#include <algorithm>
#include <deque>
#include <set>

#include "analyzer/text/lists.h"

namespace rankscope::diagnose {
namespace {

using facts::EndedCall;
using facts::JobEnd;
using facts::MemberCounts;
using facts::RankEnd;

/// A stream's unfinished calls that may run now: the first, and what is in one group with it.
using Heads = std::map<int64_t, std::vector<const EndedCall*>>;

bool isDone(const EndedCall& call, const MemberCounts& counts) {
    return !call.isMessage() && call.seq < counts.done;
}

/// Calls whose kernels were not delivered although they ended, as another member's tells, hold up nothing.
Heads headsOf(const RankEnd& rank, const JobEnd& end) {
    Heads heads;
    for (const EndedCall& call : rank.unfinished) {
        if (isDone(call, end.communicators.at(call.communicator))) continue;
        auto& head = heads[call.stream >= 0 ? call.stream : -1 - call.communicator];
        if (head.empty() || (call.group >= 0 && head.front()->group == call.group)) head.push_back(&call);
    }
    return heads;
}

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

/// Whether `call` is the counterpart of `other`, which `peer` made.
bool isSameInstance(const EndedCall& call, const EndedCall& other, int caller, int peer) {
    if (call.communicator != other.communicator || call.seq != other.seq || call.isMessage() != other.isMessage())
        return false;
    return !call.isMessage() || (call.op != other.op && call.peer == peer && other.peer == caller);
}

/// Whether a rank's counterpart of the call stands behind another call of its own.
bool isBehind(const Heads& heads, const EndedCall& call, int caller, const RankEnd& other) {
    for (const EndedCall& counterpart : other.unfinished) {
        if (!isSameInstance(call, counterpart, caller, other.rank)) continue;
        const auto head = heads.find(counterpart.stream >= 0 ? counterpart.stream : -1 - counterpart.communicator);
        return head != heads.end() && !text::contains(head->second, &counterpart);
    }
    return false;
}

}  // namespace

WaitingRanks::WaitingRanks(const JobEnd& end) {
    std::map<int, Heads> headsOfRank;
    for (const RankEnd& rank : end.ranks) headsOfRank[rank.rank] = headsOf(rank, end);
    for (const RankEnd& rank : end.ranks) {
        std::map<int, Wait> waits;  // by whom it waits for
        for (const auto& [stream, calls] : headsOfRank[rank.rank])
            for (const EndedCall* call : calls) {
                const MemberCounts& counts = end.communicators.at(call->communicator);
                std::vector<Wait> absent, behind;
                for (const int other : othersIn(counts, *call, rank.rank)) {
                    if (!hasCalled(counts, other, *call, rank.rank)) {
                        absent.push_back({rank.rank, other, *call, false});
                    } else if (const RankEnd* known = end.find(other);
                               known && isBehind(headsOfRank[other], *call, rank.rank, *known)) {
                        behind.push_back({rank.rank, other, *call, true});
                    }
                }
                for (const Wait& wait : absent.empty() ? behind : absent) waits.try_emplace(wait.on, wait);
                if (!call->isMessage() && counts.missing > 0 && counts.done == 0)
                    for (const RankEnd& silent : end.ranks)
                        if (!silent.recorded) waits.try_emplace(silent.rank, Wait{rank.rank, silent.rank, *call, false});
            }
        for (auto& [on, wait] : waits) m_waits[rank.rank].push_back(std::move(wait));
    }
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
        roots.push_back(reached.empty() ? std::vector{rank} : std::vector(reached.begin(), reached.end()));
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

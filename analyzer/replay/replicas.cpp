// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/replicas.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace rankscope::replay {
namespace {

/// Sets of ranks that grow together (union-find).
class Groups {
  public:
    explicit Groups(const std::vector<int>& ranks) : m_ranks(ranks), m_parent(ranks.size()) {
        std::iota(m_parent.begin(), m_parent.end(), size_t{0});
    }

    void join(int a, int b) {
        const size_t x = root(indexOf(a)), y = root(indexOf(b));
        m_parent[std::max(x, y)] = std::min(x, y);
    }

    std::vector<std::vector<int>> all() {
        std::map<size_t, std::vector<int>> groups;
        for (size_t i = 0; i < m_ranks.size(); ++i) groups[root(i)].push_back(m_ranks[i]);
        std::vector<std::vector<int>> result;
        for (auto& [first, ranks] : groups) result.push_back(std::move(ranks));
        return result;
    }

  private:
    size_t indexOf(int rank) const {
        return static_cast<size_t>(std::ranges::lower_bound(m_ranks, rank) - m_ranks.begin());
    }
    size_t root(size_t i) {
        while (m_parent[i] != i) i = m_parent[i] = m_parent[m_parent[i]];
        return i;
    }

    const std::vector<int>& m_ranks;
    std::vector<size_t> m_parent;
};

/// How often a rank, or a group of ranks, calls an operation on groups of a size.
using Calls = std::map<std::pair<store::Op, size_t>, int64_t>;

/// Calls `function(member, its collective)` for each member of a collective.
template <typename Function>
void forEachMember(const facts::TraceFacts& facts, const Function& function) {
    auto collective = facts.collectives.begin();
    int rank = -1;
    for (const store::CollectiveMember& member : facts.members) {  // by (rank, collective)
        if (member.rank != rank) collective = facts.collectives.begin();
        rank = member.rank;
        collective = std::ranges::lower_bound(collective, facts.collectives.end(), member.collectiveId, {},
                                              &store::Collective::id);
        if (collective != facts.collectives.end() && collective->id == member.collectiveId)
            function(member, *collective);
    }
}

class Finder {
  public:
    explicit Finder(const facts::TraceFacts& facts) : m_facts(facts) {
        for (const facts::RankFacts& rank : facts.ranks) m_ranks.push_back(rank.rank);
        for (const store::Collective& row : facts.collectives) m_used.insert(row.communicatorId);
        forEachMember(facts, [&](const store::CollectiveMember& member, const store::Collective& collective) {
            ++m_calls[member.rank][{collective.op, sizeOf(collective.communicatorId)}];
        });
    }

    Replicas find() const {
        std::set<size_t> sizes;
        for (int64_t id : m_used) sizes.insert(sizeOf(id));
        Replicas best;
        for (size_t size : sizes) {
            Replicas found = without(size);
            if (found.ranks.size() >= 2 && found.ranks.size() > best.ranks.size() && alike(found.ranks))
                best = std::move(found);
        }
        return best;
    }

  private:
    size_t sizeOf(int64_t communicator) const { return m_facts.communicators.at(communicator).ranks.size(); }

    Replicas without(size_t size) const {
        Replicas replicas;
        Groups groups(m_ranks);
        for (const store::P2p& row : m_facts.pointToPoint) groups.join(row.srcRank, row.dstRank);
        for (int64_t id : m_used) {
            const std::vector<int>& ranks = m_facts.communicators.at(id).ranks;
            if (ranks.size() == size || ranks.size() == m_ranks.size())
                replicas.shared.insert(id);
            else
                for (int rank : ranks) groups.join(ranks.front(), rank);
        }
        replicas.ranks = groups.all();
        return replicas;
    }

    bool alike(const std::vector<std::vector<int>>& groups) const {
        const auto callsOf = [&](const std::vector<int>& ranks) {
            Calls calls;
            for (int rank : ranks)
                if (const auto own = m_calls.find(rank); own != m_calls.end())
                    for (const auto& [what, count] : own->second) calls[what] += count;
            return calls;
        };
        const Calls first = callsOf(groups.front());
        return std::ranges::all_of(groups, [&](const std::vector<int>& ranks) {
            return ranks.size() == groups.front().size() && callsOf(ranks) == first;
        });
    }

    const facts::TraceFacts& m_facts;
    std::vector<int> m_ranks;
    std::set<int64_t> m_used;  // communicators that have collectives
    std::map<int, Calls> m_calls;
};

/// How a replica comes to what all of them share.
struct Arrivals {
    int64_t lateNs = 0;  // behind the first rank, summed over collectives
    int last = 0;        // how often nobody came later
};

std::vector<Arrivals> arrivalsOf(const facts::TraceFacts& facts, const Replicas& replicas,
                                 const std::unordered_map<int, size_t>& replicaOf) {
    std::vector<Arrivals> arrivals(replicas.ranks.size());
    forEachMember(facts, [&](const store::CollectiveMember& member, const store::Collective& collective) {
        if (!replicas.shared.contains(collective.communicatorId) || !member.arrivalNs || !collective.firstArrivalNs)
            return;
        Arrivals& of = arrivals[replicaOf.at(member.rank)];
        of.lateNs += *member.arrivalNs - *collective.firstArrivalNs;
        if (collective.lastRank == member.rank) ++of.last;
    });
    return arrivals;
}

/// Both orders by turns, each replica once.
std::vector<size_t> latestFirst(const std::vector<Arrivals>& arrivals) {
    std::vector<size_t> byTime(arrivals.size());
    std::iota(byTime.begin(), byTime.end(), size_t{0});
    std::vector<size_t> byCount = byTime;
    std::ranges::stable_sort(byTime, std::ranges::greater(), [&](size_t i) { return arrivals[i].lateNs; });
    std::ranges::stable_sort(byCount, std::ranges::greater(), [&](size_t i) { return arrivals[i].last; });
    std::vector<size_t> order;
    std::vector<bool> taken(arrivals.size());
    for (size_t i = 0; i < arrivals.size(); ++i)
        for (size_t next : {byTime[i], byCount[i]}) {
            if (!taken[next]) order.push_back(next);
            taken[next] = true;
        }
    return order;
}

double lateByOthersNs(const facts::TraceFacts& facts, const Replicas& replicas, const std::set<int>& replayed) {
    std::unordered_map<int64_t, int64_t> lastNs;  // by collective: of the ranks that are replayed
    forEachMember(facts, [&](const store::CollectiveMember& member, const store::Collective& collective) {
        if (!replicas.shared.contains(collective.communicatorId) || !replayed.contains(member.rank)) return;
        int64_t& last = lastNs.try_emplace(collective.id, INT64_MIN).first->second;
        if (member.arrivalNs) last = std::max(last, *member.arrivalNs);
    });
    double allNs = 0;
    std::set<int> steps;
    for (const store::Collective& collective : facts.collectives) {
        const auto last = lastNs.find(collective.id);
        if (collective.step) steps.insert(*collective.step);
        if (last != lastNs.end() && last->second != INT64_MIN && collective.lastArrivalNs)
            allNs += static_cast<double>(std::max<int64_t>(0, *collective.lastArrivalNs - last->second));
    }
    // Communicators side by side wait for the same replica at the same time.
    const size_t sideBySide = std::max<size_t>(1, replicas.ranks.front().size());
    return allNs / static_cast<double>(std::max<size_t>(1, steps.size()) * sideBySide);
}

}  // namespace

Replicas findReplicas(const facts::TraceFacts& facts) {
    if (facts.ranks.empty() || std::ranges::any_of(facts.ranks, [](const auto& rank) { return !rank.recorded; }))
        return {};
    return Finder(facts).find();
}

ReplayedReplicas chooseReplicas(const facts::TraceFacts& facts, double share) {
    const Replicas replicas = findReplicas(facts);
    const size_t all = replicas.ranks.size();
    const size_t kept = std::max(kFewestReplicas, static_cast<size_t>(share * static_cast<double>(all)));
    if (kept >= all) return {};
    std::unordered_map<int, size_t> replicaOf;
    for (size_t i = 0; i < all; ++i)
        for (int rank : replicas.ranks[i]) replicaOf[rank] = i;
    const std::vector<size_t> order = latestFirst(arrivalsOf(facts, replicas, replicaOf));
    ReplayedReplicas chosen{.of = static_cast<int>(all), .replayed = static_cast<int>(kept)};
    std::set<int> replayed;
    for (size_t i = 0; i < all; ++i) {
        const std::vector<int>& ranks = replicas.ranks[order[i]];
        if (i < kept)
            replayed.insert(ranks.begin(), ranks.end());
        else
            chosen.leftOut.insert(chosen.leftOut.end(), ranks.begin(), ranks.end());
    }
    std::ranges::sort(chosen.leftOut);
    chosen.lateByOthersNs = lateByOthersNs(facts, replicas, replayed);
    return chosen;
}

}  // namespace rankscope::replay

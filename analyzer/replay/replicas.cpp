// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/replicas.h"

#include <algorithm>
#include <functional>
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

/// How often a rank, or a group of ranks, calls each kind of collective (CollectiveKinds).
using Calls = std::vector<int64_t>;

/// Kinds of collectives: an operation on groups of a size.
class CollectiveKinds {
  public:
    explicit CollectiveKinds(const facts::TraceFacts& facts) : m_first(facts.collectives.data()) {
        std::map<std::pair<store::Op, size_t>, size_t> numbers;
        for (const store::Collective& row : facts.collectives) {
            const size_t size = facts.communicators.at(row.communicatorId).ranks.size();
            const auto [kind, isNew] = numbers.try_emplace({row.op, size}, m_sizes.size());
            if (isNew) m_sizes.push_back(size);
            m_kindOf.push_back(kind->second);
        }
    }

    size_t count() const { return m_sizes.size(); }
    /// `row` is one of the facts' collectives.
    size_t of(const store::Collective& row) const { return m_kindOf[static_cast<size_t>(&row - m_first)]; }
    size_t sizeOf(size_t kind) const { return m_sizes[kind]; }

  private:
    const store::Collective* m_first;
    std::vector<size_t> m_sizes;   // of groups, by kind
    std::vector<size_t> m_kindOf;  // by collective
};

/// Numbers of the steps that are analysed.
std::set<int> analysedSteps(const facts::TraceFacts& facts) {
    std::set<int> steps;
    for (const facts::RankFacts& rank : facts.ranks)
        for (const facts::StepWindow& step : rank.steps)
            if (!step.warmUp) steps.insert(step.step);
    return steps;
}

/// Calls `function(member, its collective)` for each member of a collective in an analysed step, all members known.
template <typename Function>
void forEachMember(const facts::TraceFacts& facts, const Function& function) {
    const std::set<int> steps = analysedSteps(facts);
    std::vector<bool> counts;
    for (const store::Collective& row : facts.collectives)
        counts.push_back(row.complete && row.step && steps.contains(*row.step));
    for (const store::CollectiveMember& member : facts.members) {  // by (rank, collective)
        const store::Collective* collective = facts.findCollective(member.collectiveId);
        if (collective != nullptr && counts[static_cast<size_t>(collective - facts.collectives.data())])
            function(member, *collective);
    }
}

class Finder {
  public:
    explicit Finder(const facts::TraceFacts& facts) : m_facts(facts), m_kinds(facts) {
        for (const facts::RankFacts& rank : facts.ranks) m_ranks.push_back(rank.rank);
        for (const store::Collective& row : facts.collectives) m_used.insert(row.communicatorId);
        Calls* calls = nullptr;
        int rank = 0;
        forEachMember(facts, [&](const store::CollectiveMember& member, const store::Collective& collective) {
            if (calls == nullptr || member.rank != rank)  // they come by rank
                calls = &m_calls.try_emplace(member.rank, m_kinds.count()).first->second;
            rank = member.rank;
            ++(*calls)[m_kinds.of(collective)];
        });
    }

    Replicas find() const {
        std::set<size_t> sizes;
        for (int64_t id : m_used) sizes.insert(sizeOf(id));
        Replicas best;
        int64_t fewest = INT64_MAX;
        for (size_t size : sizes) {
            Replicas found = without(size);
            const int64_t calls = callsOn(size);
            if (found.ranks.size() < 2 || calls >= fewest || meetTwice(found) || !alike(found.ranks)) continue;
            fewest = calls;
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

    int64_t callsOn(size_t size) const {
        int64_t calls = 0;
        for (const auto& [rank, own] : m_calls)
            for (size_t kind = 0; kind < own.size(); ++kind)
                if (m_kinds.sizeOf(kind) == size) calls += own[kind];
        return calls;
    }

    /// A rank is in two of the shared communicators that are not of all ranks.
    bool meetTwice(const Replicas& replicas) const {
        std::set<std::vector<int>> groups;  // communicators of the same ranks count once
        for (int64_t id : replicas.shared)
            if (sizeOf(id) != m_ranks.size()) groups.insert(m_facts.communicators.at(id).ranks);
        std::set<int> seen;
        for (const std::vector<int>& ranks : groups)
            for (int rank : ranks)
                if (!seen.insert(rank).second) return true;
        return false;
    }

    bool alike(const std::vector<std::vector<int>>& groups) const {
        const auto callsOf = [&](const std::vector<int>& ranks) {
            Calls calls(m_kinds.count());
            for (int rank : ranks)
                if (const auto own = m_calls.find(rank); own != m_calls.end())
                    std::ranges::transform(calls, own->second, calls.begin(), std::plus());
            return calls;
        };
        const Calls first = callsOf(groups.front());
        return std::ranges::all_of(groups, [&](const std::vector<int>& ranks) {
            return ranks.size() == groups.front().size() && callsOf(ranks) == first;
        });
    }

    const facts::TraceFacts& m_facts;
    CollectiveKinds m_kinds;
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

/// Three orders by turns, each replica once.
std::vector<size_t> chosenFirst(const std::vector<Arrivals>& arrivals) {
    std::vector<size_t> byTime(arrivals.size());
    std::iota(byTime.begin(), byTime.end(), size_t{0});
    std::vector<size_t> byCount = byTime;
    std::ranges::stable_sort(byTime, std::ranges::greater(), [&](size_t i) { return arrivals[i].lateNs; });
    std::ranges::stable_sort(byCount, std::ranges::greater(), [&](size_t i) { return arrivals[i].last; });
    std::vector<size_t> spread;  // of `byTime`: the middle one, then the middles of both halves, and so on
    for (size_t parts = 2; parts / 2 <= arrivals.size(); parts *= 2)
        for (size_t part = 1; part < parts; part += 2) spread.push_back(byTime[part * arrivals.size() / parts]);
    std::vector<size_t> order;
    std::vector<bool> taken(arrivals.size());
    const auto take = [&](const std::vector<size_t>& from) {
        const auto next = std::ranges::find_if(from, [&](size_t i) { return !taken[i]; });
        if (next == from.end()) return;
        taken[*next] = true;
        order.push_back(*next);
    };
    for (size_t i = 0; i < arrivals.size(); ++i)
        for (const std::vector<size_t>* from : {&byTime, &byCount, &spread}) take(*from);
    return order;
}

/// Sums up by how much shared collectives began later than the last replayed rank came, mean over steps.
double lateByOthersNs(const facts::TraceFacts& facts, const Replicas& replicas, const std::vector<bool>& isReplayed,
                      const std::unordered_map<int, size_t>& replicaOf) {
    std::unordered_map<int64_t, int64_t> lateNs;  // by collective
    forEachMember(facts, [&](const store::CollectiveMember& member, const store::Collective& collective) {
        if (!replicas.shared.contains(collective.communicatorId) || !isReplayed[replicaOf.at(member.rank)] ||
            !member.arrivalNs || !collective.lastArrivalNs)
            return;
        int64_t& late = lateNs.try_emplace(collective.id, INT64_MAX).first->second;
        late = std::min(late, *collective.lastArrivalNs - *member.arrivalNs);
    });
    double allNs = 0;
    for (const auto& [id, ns] : lateNs) allNs += static_cast<double>(ns);
    // Communicators side by side wait for the same replica at the same time.
    const size_t sideBySide = replicas.ranks.front().size();
    return allNs / static_cast<double>(std::max<size_t>(1, analysedSteps(facts).size()) * sideBySide);
}

double meanStepNs(const facts::TraceFacts& facts) {
    double ns = 0;
    int steps = 0;
    for (const facts::StepWindow& step : facts.ranks.front().steps) {
        if (step.warmUp) continue;
        ns += static_cast<double>(step.durNs);
        ++steps;
    }
    return steps > 0 ? ns / steps : 0;
}

}  // namespace

Replicas findReplicas(const facts::TraceFacts& facts) {
    if (facts.ranks.empty() || std::ranges::any_of(facts.ranks, [](const auto& rank) { return !rank.recorded; }))
        return {};
    return Finder(facts).find();
}

ReplayedReplicas chooseReplicas(const facts::TraceFacts& facts, double share, double mostShare) {
    const Replicas replicas = findReplicas(facts);
    const size_t all = replicas.ranks.size();
    if (all <= kFewestReplicas) return {};
    std::unordered_map<int, size_t> replicaOf;
    for (size_t i = 0; i < all; ++i)
        for (int rank : replicas.ranks[i]) replicaOf[rank] = i;
    const std::vector<size_t> order = chosenFirst(arrivalsOf(facts, replicas, replicaOf));
    std::vector<bool> isReplayed(all);
    size_t kept = std::max(kFewestReplicas, static_cast<size_t>(share * static_cast<double>(all)));
    double lateNs = 0;
    for (;; kept *= 2) {
        if (kept >= all || static_cast<double>(kept) > mostShare * static_cast<double>(all)) return {};
        for (size_t i = 0; i < kept; ++i) isReplayed[order[i]] = true;
        lateNs = lateByOthersNs(facts, replicas, isReplayed, replicaOf);
        if (lateNs <= kMostLateByOthers * meanStepNs(facts)) break;
    }
    ReplayedReplicas chosen{.of = static_cast<int>(all), .replayed = static_cast<int>(kept), .lateByOthersNs = lateNs};
    for (size_t i = 0; i < all; ++i)
        if (!isReplayed[i])
            chosen.leftOut.insert(chosen.leftOut.end(), replicas.ranks[i].begin(), replicas.ranks[i].end());
    std::ranges::sort(chosen.leftOut);
    return chosen;
}

}  // namespace rankscope::replay

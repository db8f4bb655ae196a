// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/delays.h"

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analyzer/job/analysis.h"

namespace rankscope::job {
namespace {

constexpr int64_t kNoWaitNs = 10'000;  // up to a launch gap two ranks arrive together
constexpr double kVictimShare = 0.25;  // of the mean victim's loss: whoever loses less by a rank is not named with it

/// Less than that is not worth a thread, which takes some 0.1 ms to begin: a wait takes a microsecond to look at, a
/// rank a hundred (256 ranks, 10 steps).
constexpr size_t kWaitsAThread = 2'000;
constexpr size_t kRanksAThread = 20;

/// Calls `function(begin, end)` for parts of [0, count), each in a thread of its own: so many `threads` at most, each
/// with `fewest` at least.
template <typename Function>
void inParts(size_t count, size_t fewest, unsigned threads, const Function& function) {
    const size_t parts = std::clamp<size_t>(count / fewest, 1, std::max(1U, threads));
    std::vector<std::future<void>> others;
    for (size_t part = 1; part < parts; ++part)
        others.push_back(std::async(std::launch::async, function, count * part / parts, count * (part + 1) / parts));
    function(size_t{0}, count / parts);
    for (std::future<void>& other : others) other.get();
}

/// A rank whose work was waited for, with its share of the wait.
struct Root {
    int rank = -1;
    double share = 0;
};

/// Of one wait; less than 1 in all where the network was waited for.
using Roots = std::vector<Root>;

/// The waits of a replay by the arrival that ended them, and since when somebody waited for it.
class LastArrivals {
    using Wait = std::pair<replay::TaskId, int64_t>;

  public:
    explicit LastArrivals(const replay::ReplayModel& replay) : m_graph(replay.graph), m_schedule(replay.unchanged) {
        for (replay::TaskId task = 0; task < m_graph.size(); ++task) {
            if (m_graph.info[task].kind != replay::TaskKind::transfer) continue;
            const replay::TaskId last = lastArrival(task);
            const replay::TaskId own = m_graph.before[task];
            if (last == replay::kNoTask || own == replay::kNoTask || m_graph.rankOf(last) == m_graph.rankOf(task))
                continue;
            m_ofKernel.emplace_back(m_graph.info[task].row, last);
            m_waits.emplace_back(last, m_schedule.startNs[own]);
        }
        std::ranges::sort(m_ofKernel);
        std::ranges::sort(m_waits);  // of each arrival the earliest first
        const auto again = std::ranges::unique(m_waits, {}, &Wait::first);
        m_waits.erase(again.begin(), again.end());
        if (!replay.leftOut.empty()) findCollectives();
    }

    size_t size() const { return m_waits.size(); }

    Roots rootsOf(size_t wait) const {
        const auto [arrival, sinceNs] = m_waits[wait];
        std::map<int, double> work;
        double all = 0, inTransfer = 0;
        for (const replay::PathPiece& piece : replay::pathBefore(m_graph, m_schedule, arrival, sinceNs)) {
            all += static_cast<double>(piece.ns);
            if (piece.category == replay::PathCategory::transfer)
                inTransfer += static_cast<double>(piece.ns);
            else
                work[piece.rank] += static_cast<double>(piece.ns);
        }
        // A wait of no length is for whoever came last.
        if (all <= 0) return {{m_graph.rankOf(arrival), 1.0}};
        // Collectives that a late rank takes part in are on its path too, and take as long on the path of one in time:
        // they are nobody's lateness, unless there is nothing else.
        Roots roots;
        if (all - inTransfer <= 0) return roots;
        for (const auto& [rank, ns] : work) roots.push_back({rank, ns / (all - inTransfer)});
        return roots;
    }

    /// Which wait the kernel was in; of a rank that is not replayed, that of the members of its collective that are.
    /// Nothing where none of them is.
    std::optional<size_t> waitOf(const facts::CommTask& task, bool isReplayed) const {
        const replay::TaskId last =
            isReplayed ? find(m_ofKernel, task.kernelId) : find(m_ofCollective, task.collectiveId);
        const auto wait = std::ranges::lower_bound(m_waits, last, {}, &Wait::first);
        if (wait == m_waits.end() || wait->first != last) return std::nullopt;
        return wait - m_waits.begin();
    }

  private:
    using Rows = std::vector<std::pair<uint32_t, replay::TaskId>>;  // sorted

    static replay::TaskId find(const Rows& rows, int64_t id) {
        const auto row = static_cast<uint32_t>(id);
        const auto at = std::ranges::lower_bound(rows, row, {}, &Rows::value_type::first);
        return at == rows.end() || at->first != row ? replay::kNoTask : at->second;
    }

    void findCollectives() {
        for (const replay::Exchange& exchange : m_graph.exchanges) {
            if (exchange.join == replay::kNoTask) continue;
            replay::TaskId last = replay::kNoTask;
            for (const replay::Edge& member : m_graph.edgesOf(exchange.join)) last = later(last, member.from);
            if (last != replay::kNoTask) m_ofCollective.emplace_back(exchange.id, last);
        }
        std::ranges::sort(m_ofCollective);
    }

    replay::TaskId later(replay::TaskId a, replay::TaskId b) const {
        return a == replay::kNoTask || (b != replay::kNoTask && m_schedule.endNs[b] > m_schedule.endNs[a]) ? b : a;
    }

    /// The arrival that a transfer waited for last.
    replay::TaskId lastArrival(replay::TaskId transfer) const {
        replay::TaskId last = replay::kNoTask;
        for (const replay::Edge& edge : m_graph.edgesOf(transfer)) {
            if (edge.kind != replay::WaitKind::peer) continue;
            if (m_graph.info[edge.from].kind == replay::TaskKind::arrival) last = later(last, edge.from);
            if (m_graph.info[edge.from].kind != replay::TaskKind::join) continue;
            for (const replay::Edge& member : m_graph.edgesOf(edge.from)) last = later(last, member.from);
        }
        return last;
    }

    const replay::TaskGraph& m_graph;
    const replay::Schedule& m_schedule;
    Rows m_ofKernel;            // by row: the arrival that it waited for last
    Rows m_ofCollective;        // the same of all its members, where ranks are left out of the replay
    std::vector<Wait> m_waits;  // by arrival
};

/// By row of kernel: who is to blame for the waiting of that NCCL kernel.
class RootFinder {
  public:
    RootFinder(const replay::ReplayModel& replay, unsigned threads)
        : m_replay(replay), m_arrivals(replay), m_roots(m_arrivals.size()) {
        inParts(m_roots.size(), kWaitsAThread, threads, [this](size_t begin, size_t end) {
            for (size_t wait = begin; wait < end; ++wait) m_roots[wait] = m_arrivals.rootsOf(wait);
        });
    }

    /// nullptr: not in the replay, or its end was a rank that is not.
    const Roots* of(int rank, const facts::CommTask& task) const {
        if (m_replay.hasLeftOut(task.lastRank)) return nullptr;
        const std::optional<size_t> wait = m_arrivals.waitOf(task, !m_replay.hasLeftOut(rank));
        return wait ? &m_roots[*wait] : nullptr;
    }

  private:
    const replay::ReplayModel& m_replay;
    LastArrivals m_arrivals;
    std::vector<Roots> m_roots;
};

}  // namespace

std::span<const Delays::Pairs::value_type> Delays::lostTo(int root) const {
    const auto found = std::ranges::equal_range(pairs, root, {}, [](const auto& pair) { return pair.first.first; });
    return {found.begin(), found.end()};
}

namespace {

double allLostNs(const Delays& delays) {
    double all = 0;
    for (const auto& [victim, ns] : delays.lostBy) all += ns;
    return all;
}

/// Delays::shareFor(), with what allLostNs() gives.
double shareFor(const Delays& delays, const std::set<int>& ranks, double allNs) {
    double ofOthers = allNs, forThese = 0;
    for (const int root : ranks) {
        const auto own = std::ranges::lower_bound(delays.lostBy, root, {}, &std::pair<int, double>::first);
        if (own != delays.lostBy.end() && own->first == root) ofOthers -= own->second;
        for (const auto& [key, ns] : delays.lostTo(root))
            if (!ranks.contains(key.second)) forThese += ns;
    }
    return ofOthers > 0 ? forThese / ofOthers : 0;
}

}  // namespace

double Delays::shareFor(const std::vector<int>& ranks) const {
    return job::shareFor(*this, {ranks.begin(), ranks.end()}, allLostNs(*this));
}

namespace {

/// What a rank loses over the analysed steps.
struct RankLoss {
    double ns = 0;
    std::map<int, Delay> byRoot;
};

/// `finder`: nullptr without a replay.
RankLoss lossOf(const facts::RankSummary& rank, const RecordedJob& job, const RootFinder* finder) {
    RankLoss loss;
    std::map<int32_t, const facts::CommTask*>
        waited;  // by stream: the last that waited, for which the transfers behind it are late
    for (const facts::CommTask& task : rank.communication) {
        const facts::CommTask*& cause = waited[task.streamId];
        if (cause == nullptr || task.waitNs > kNoWaitNs) cause = &task;
        const auto waiting = static_cast<double>(task.exposedWaitNs),
                   transfer = static_cast<double>(task.lateTransferNs);
        if (task.step < 0 || waiting + transfer <= 0 || !std::ranges::binary_search(job.steps, task.step)) continue;
        loss.ns += waiting + transfer;
        const auto charge = [&](const facts::CommTask& of, double Delay::*part, double ns) {
            const Roots* roots = finder != nullptr ? finder->of(rank.rank, of) : nullptr;
            const Roots direct{{of.lastRank, 1.0}};
            for (const auto& [root, share] : roots != nullptr ? *roots : direct)
                if (root >= 0 && root != rank.rank) loss.byRoot[root].*part += share * ns;
        };
        charge(task, &Delay::waitingNs, waiting);
        charge(*cause, &Delay::transferNs, transfer);
    }
    return loss;
}

}  // namespace

Delays delaysOf(const RecordedJob& job, const replay::ReplayModel& replay, unsigned threads) {
    Delays delays;
    if (job.ranks.size() < 2 || job.steps.empty()) return delays;
    std::optional<RootFinder> finder;
    if (replay.available()) finder.emplace(replay, threads);
    std::vector<RankLoss> ofRanks(job.ranks.size());
    inParts(ofRanks.size(), kRanksAThread, threads, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) ofRanks[i] = lossOf(job.ranks[i], job, finder ? &*finder : nullptr);
    });
    std::vector<std::pair<std::pair<int, int>, Delay>> losses;  // (root, victim)
    for (size_t i = 0; i < ofRanks.size(); ++i) {
        const int rank = job.ranks[i].rank;
        if (ofRanks[i].ns > 0) delays.lostBy.emplace_back(rank, ofRanks[i].ns);
        for (const auto& [root, loss] : ofRanks[i].byRoot) losses.push_back({{root, rank}, loss});
    }
    std::ranges::sort(losses, {}, [](const auto& loss) { return loss.first; });
    const double all = allLostNs(delays);
    const auto steps = static_cast<double>(job.steps.size());
    const auto others = static_cast<double>(job.ranks.size() - 1);
    delays.lostNs = all / steps / static_cast<double>(job.ranks.size());
    std::map<int, Delay> byRank;
    for (const auto& [key, loss] : losses) {
        delays.pairs.emplace_back(key, loss.nsPerStep());
        Delay& delay = byRank[key.first];
        delay.rank = key.first;
        delay.waitingNs += loss.waitingNs / steps / others;
        delay.transferNs += loss.transferNs / steps / others;
    }
    for (auto& [root, delay] : byRank) {
        delay.share = shareFor(delays, {root}, all);
        for (const auto& [key, ns] : delays.lostTo(root))
            if (ns >= kVictimShare * delay.nsPerStep() * steps && ns > 0) delay.victims.push_back(key.second);
        delays.byRank.push_back(std::move(delay));
    }
    std::ranges::stable_sort(delays.byRank, std::ranges::greater(), &Delay::nsPerStep);
    return delays;
}

}  // namespace rankscope::job

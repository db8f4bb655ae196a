// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/edits/launch_index.h"
#include "analyzer/facts/intervals.h"
#include "analyzer/replay/simulate.h"

namespace rankscope::edits {

void NoContention::apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const {
    std::map<int, double> lostShare;
    for (const facts::RankSummary& rank : analysis.ranks)
        if (rank.contention.samples > 0 && rank.contention.lostShare > 0)
            lostShare[rank.rank] = rank.contention.lostShare;
    if (lostShare.empty())
        throw EditError("no kernel of this run is slower beside communication than alone",
                        "it takes kernels that run both ways, three times each");
    const replay::Schedule schedule = replay::simulate(graph);
    std::map<int, std::vector<facts::Interval>>
        busy;  // NCCL kernels by rank: they hold their multiprocessors while they wait, too
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        const replay::TaskKind kind = graph.info[task].kind;
        if (kind != replay::TaskKind::transfer) continue;
        const replay::TaskId arrival = graph.before[task];
        busy[graph.rankOf(task)].push_back(
            {arrival == replay::kNoTask ? schedule.startNs[task] : schedule.startNs[arrival], schedule.endNs[task]});
    }
    std::map<int, facts::CoveredLength> covered;
    for (auto& [rank, intervals] : busy)
        covered.emplace(rank, facts::CoveredLength(facts::unite(std::move(intervals))));
    for (replay::TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind != replay::TaskKind::kernel) continue;
        const auto lost = lostShare.find(graph.rankOf(task));
        const auto beside = covered.find(graph.rankOf(task));
        if (lost == lostShare.end() || beside == covered.end()) continue;
        graph.durationNs[task] -=
            scaledNs(beside->second.within(schedule.startNs[task], schedule.endNs[task]), lost->second);
    }
    effect.assume("communication takes as long as before with fewer multiprocessors of its own");
}

namespace {

constexpr double kUneven = 0.1;  // of a micro-step's kernels: an embedding, a loss or a norm more in one of them

/// Each `parts`-th of the reductions has the sizes of the one before, and is called behind as many kernels: forward and
/// backward. Layers of one backward pass that are reduced one by one have no forward pass between them.
bool comeAgain(const replay::TaskGraph& graph, const LaunchIndex& index, const std::vector<uint32_t>& sequence,
               size_t parts) {
    const size_t period = sequence.size() / parts;
    for (size_t i = period; i < sequence.size(); ++i)
        if (graph.exchanges[sequence[i]].bytes != graph.exchanges[sequence[i - period]].bytes) return false;
    const replay::ExchangeMember& member = graph.membersOf(graph.exchanges[sequence.front()]).front();
    const ComputeLane& compute = index.compute(member.rank);
    const int step = graph.exchanges[sequence.front()].step;
    double before = static_cast<double>(
        std::partition_point(compute.kernels.begin(), compute.kernels.end(),
                             [&](replay::TaskId kernel) { return graph.info[kernel].step < step; }) -
        compute.kernels.begin());
    double most = 0, fewest = std::numeric_limits<double>::max();
    for (size_t i = period - 1; i < sequence.size(); i += period) {
        const replay::TaskId call = index.launchOf(graph.membersOf(graph.exchanges[sequence[i]]).front().arrival);
        if (call == replay::kNoTask)
            throw EditError("which kernels a reduction follows is unknown without the calls that launch them",
                            "record the CUDA calls");
        const auto launched =
            std::partition_point(compute.kernels.begin(), compute.kernels.end(), [&](replay::TaskId kernel) {
                return index.launchOf(kernel) == replay::kNoTask || index.launchOf(kernel) < call;
            });
        const auto now = static_cast<double>(launched - compute.kernels.begin());
        most = std::max(most, now - before);
        fewest = std::min(fewest, now - before);
        before = now;
    }
    return most > 0 && most - fewest <= std::max(1.0, kUneven * most);
}

/// It is no exchange any more: later edits do not bring it back.
void takeOut(replay::Exchange& exchange) {
    exchange.members = 0;
    exchange.join = replay::kNoTask;
    exchange.bytes = 0;
}

}  // namespace

void ReduceOnce::apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const {
    std::map<std::tuple<int64_t, int, store::Op>, std::vector<uint32_t>>
        sequences;  // by communicator, step and operation
    for (uint32_t i = 0; i < graph.exchanges.size(); ++i) {
        const replay::Exchange& exchange = graph.exchanges[i];
        const facts::CommRole role = analysis.layout.role(exchange.communicatorId, exchange.op);
        const bool reduces =
            exchange.members > 0 && (exchange.op == store::Op::allReduce || exchange.op == store::Op::reduceScatter);
        if (reduces && exchange.step >= 0 &&
            (role == facts::CommRole::gradients || role == facts::CommRole::shardedParameters ||
             role == facts::CommRole::replicas))
            sequences[{exchange.communicatorId, exchange.step, exchange.op}].push_back(i);
    }
    const auto parts = static_cast<size_t>(m_microSteps);
    const LaunchIndex index(graph);
    std::vector<bool> gone(graph.size());
    bool found = false;
    for (auto& [key, sequence] : sequences) {
        std::sort(sequence.begin(), sequence.end(),
                  [&](uint32_t a, uint32_t b) { return graph.exchanges[a].join < graph.exchanges[b].join; });
        const size_t kept = sequence.size() / parts;
        if (kept == 0 || sequence.size() % parts != 0 || !comeAgain(graph, index, sequence, parts)) continue;
        found = true;
        for (size_t i = 0; i + kept < sequence.size(); ++i) {
            for (const replay::ExchangeMember& member : graph.membersOf(graph.exchanges[sequence[i]])) {
                if (member.transfer == replay::kNoTask) continue;
                gone[member.transfer] = true;
                graph.durationNs[member.transfer] = 0;
            }
            takeOut(graph.exchanges[sequence[i]]);
        }
    }
    if (!found)
        throw EditError(fmt::format("no reductions of gradients come in {} equal sequences a step, each behind a "
                                    "forward and a backward pass of its own",
                                    m_microSteps),
                        "rankscope analyze tells how often they repeat");
    removeEdges(graph, [&](replay::TaskId to, const replay::Edge& edge) {
        return gone[to] && edge.kind == static_cast<uint32_t>(replay::WaitKind::peer);
    });
    effect.assume("gradients are summed on the device between micro-steps at no cost");
}

std::unique_ptr<Edit> parseNoContention(EditArguments&) {
    return std::make_unique<NoContention>();
}

std::unique_ptr<Edit> parseReduceOnce(EditArguments& arguments) {
    return std::make_unique<ReduceOnce>(arguments.requiredWhole("micro-steps", 2));
}

}  // namespace rankscope::edits

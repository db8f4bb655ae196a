// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/recorded_work.h"
#include "analyzer/text/lists.h"

namespace rankscope::edits {
namespace {

struct Pace {
    double medianNs = 0;
    double totalNs = 0;
};

/// Of a kernel key: each rank's usual duration and total.
struct Paces {
    std::map<int, Pace> byRank;
    std::vector<double> ofPeers;  // medianNs of the ranks that are peers of others, sorted
};

/// By kernel key; the `wanted` ranks are nobody's peers.
std::vector<Paces> paces(const TaskGraph& graph, const std::vector<int>& wanted) {
    std::vector<std::map<int, std::vector<double>>> samples(graph.kernelKeys.size());
    for (TaskId task = 0; task < graph.size(); ++task) {
        const TaskInfo& info = graph.info[task];
        if (info.kind != TaskKind::kernel || info.detail >= samples.size()) continue;
        samples[info.detail][graph.rankOf(task)].push_back(static_cast<double>(graph.durationNs[task]));
    }
    std::vector<Paces> result(samples.size());
    for (size_t key = 0; key < samples.size(); ++key) {
        for (auto& [rank, durations] : samples[key]) {
            Pace& pace = result[key].byRank[rank];
            for (double ns : durations) pace.totalNs += ns;
            pace.medianNs = facts::median(std::move(durations));
            if (!std::ranges::binary_search(wanted, rank)) result[key].ofPeers.push_back(pace.medianNs);
        }
        std::ranges::sort(result[key].ofPeers);
    }
    return result;
}

/// By kernel key: what a rank's kernels are to be multiplied by. Kernels that no peer runs follow the others of their
/// rank.
std::vector<double> factorsOf(int rank, bool isPeer, const std::vector<Paces>& paces) {
    std::vector<double> factors(paces.size(), 0);
    double before = 0, after = 0;
    for (size_t key = 0; key < paces.size(); ++key) {
        const auto own = paces[key].byRank.find(rank);
        if (own == paces[key].byRank.end() || own->second.medianNs <= 0) continue;
        const std::vector<double>& peers = paces[key].ofPeers;
        if (peers.size() < (isPeer ? 2 : 1)) continue;
        const double usualNs =
            isPeer ? facts::medianOfOthers(peers, own->second.medianNs) : facts::medianOfSorted(peers);
        factors[key] = usualNs / own->second.medianNs;
        before += own->second.totalNs;
        after += own->second.totalNs * factors[key];
    }
    const double usual = before > 0 ? after / before : 1;
    for (double& factor : factors)
        if (factor == 0) factor = usual;
    return factors;
}

/// Ranks of a stage.
struct StageRanks {
    size_t replayed = 0;
    size_t others = 0;
};

/// The mean work of the ranks of a stage: of those that are replayed as they are now, and of the others as they were
/// recorded, times what has become of the middle one of the replayed. Nothing where not every rank does such work at
/// all: that cannot be shared by sizes. `recorded`: nullptr where nobody is left out, and of a step that was not
/// analysed; the others are then taken to do what the replayed do.
std::optional<double> meanWorkNs(const std::map<int, double>& byRank, const job::RecordedWork* recorded,
                                 const StageRanks& ranks) {
    if (byRank.size() < ranks.replayed) return std::nullopt;
    double ns = 0;
    std::vector<double> became;
    for (const auto& [rank, nowNs] : byRank) {
        ns += nowNs;
        if (recorded == nullptr) continue;
        const double thenNs = text::valueAt(recorded->replayedNs, rank);
        if (thenNs > 0) became.push_back(nowNs / thenNs);
    }
    const auto replayed = static_cast<double>(byRank.size());
    if (became.empty() || ranks.others == 0) return ns / replayed;
    if (recorded->othersNs <= 0) return std::nullopt;
    return (ns + recorded->othersNs * facts::median(std::move(became))) /
           (replayed + static_cast<double>(ranks.others));
}

void shareKernels(TaskGraph& graph, const Analysis& analysis) {
    std::unordered_map<int, int> stageOf;  // by rank; -1 without a pipeline
    std::map<int, StageRanks> ranksOfStage;
    for (const facts::RankSummary& rank : analysis.ranks) {
        StageRanks& ranks = ranksOfStage[stageOf[rank.rank] = analysis.layout.stageOf(rank.rank)];
        ++(analysis.replay.hasLeftOut(rank.rank) ? ranks.others : ranks.replayed);
    }
    struct Share {
        std::map<int, double> byRank;  // ns
        std::optional<double> meanNs;
    };
    std::map<job::WorkKey, Share> shares;
    const auto shareOf = [&](TaskId task) -> Share& {
        return shares[{stageOf[graph.rankOf(task)], graph.info[task].step,
                       graph.kernelKeys[graph.info[task].detail].nameId}];
    };
    const auto isKernel = [&](TaskId task) {
        return graph.info[task].kind == TaskKind::kernel && graph.info[task].detail < graph.kernelKeys.size();
    };
    for (TaskId task = 0; task < graph.size(); ++task)
        if (isKernel(task)) shareOf(task).byRank[graph.rankOf(task)] += static_cast<double>(graph.durationNs[task]);
    for (auto& [key, share] : shares) {
        const auto recorded = analysis.works.find(key);
        share.meanNs = meanWorkNs(share.byRank, recorded == analysis.works.end() ? nullptr : &recorded->second,
                                  ranksOfStage[key.stage]);
    }
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (!isKernel(task)) continue;
        const Share& share = shareOf(task);
        if (!share.meanNs) continue;
        const double own = share.byRank.at(graph.rankOf(task));
        if (own > 0) graph.durationNs[task] = scaledNs(graph.durationNs[task], *share.meanNs / own);
    }
}

/// Grouped messages, the k-th kernel of each member of a communicator: all ranks leave when the busiest port is done,
/// which carries the mean of the bytes then.
void shareMessages(TaskGraph& graph, const Analysis& analysis) {
    struct Group {
        std::vector<TaskId> tasks;
        int64_t busiest = 0;
        int64_t total = 0;
    };
    std::map<std::pair<int64_t, int>, Group> groups;  // by communicator and ordinal
    std::map<std::pair<int64_t, int>, int> ordinals;  // by communicator and rank
    for (const TransferTask& transfer : transferTasks(graph)) {
        const Exchange& exchange = graph.exchanges[transfer.exchange];
        if (!exchange.message() ||
            analysis.layout.role(exchange.communicatorId, store::Op::send) != facts::CommRole::experts)
            continue;
        Group& group = groups[{exchange.communicatorId, ordinals[{exchange.communicatorId, transfer.rank}]++}];
        group.tasks.push_back(transfer.task);
        group.busiest = std::max({group.busiest, transfer.bytesIn, transfer.bytesOut});
        group.total += transfer.bytesIn;
    }
    for (const auto& [key, group] : groups) {
        if (group.busiest <= 0 || group.tasks.size() < 2) continue;
        const double factor = static_cast<double>(group.total) / static_cast<double>(group.tasks.size()) /
                              static_cast<double>(group.busiest);
        for (TaskId task : group.tasks) scaleTransfer(graph, task, std::min(1.0, factor));
    }
}

/// The same kernels (name and launch shape) take as long on a rank as on its peers, by medians. With `ranks` these
/// change, and the others are the peers; without, every rank that is slower than its peers.
void balanceSpeed(const std::vector<int>& wanted, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    const std::vector<int> ranks = recordedRanks(analysis, wanted);
    if (!wanted.empty() && ranks.size() == recordedRanks(analysis, {}).size())
        throw EditError("all ranks are to be balanced, and none is left to compare with", "name the slow ones only");
    if (analysis.ranks.size() < 2) throw EditError("the run has one rank: there is none to compare with");
    const std::vector<Paces> all = paces(graph, wanted);
    std::map<int, std::vector<double>> factors;
    for (int rank : ranks) factors[rank] = factorsOf(rank, wanted.empty(), all);
    for (TaskId task = 0; task < graph.size(); ++task) {
        const TaskInfo& info = graph.info[task];
        if (info.kind != TaskKind::kernel || info.detail >= all.size()) continue;
        const auto rank = factors.find(graph.rankOf(task));
        if (rank == factors.end()) continue;
        const double factor = wanted.empty() ? std::min(1.0, rank->second[info.detail]) : rank->second[info.detail];
        graph.durationNs[task] = scaledNs(graph.durationNs[task], factor);
    }
    effect.assume("kernels take the median of the same kernels on the other ranks");
}

/// Work is shared evenly among ranks of one role (a pipeline stage, or all): each kernel name takes the mean over them
/// in every step. Grouped messages (tokens to experts) are shared evenly as well.
void balanceWork(TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    if (analysis.ranks.size() < 2) throw EditError("the run has one rank: work has nobody to be shared with");
    shareKernels(graph, analysis);
    shareMessages(graph, analysis);
    effect.assume("the sum of the work stays, each rank of a role gets the mean of it");
}

}  // namespace

std::unique_ptr<Edit> parseBalance(EditArguments& arguments) {
    const std::string what = arguments.word("what", {"speed", "work"}, "speed");
    std::vector<int> ranks = arguments.ranks();
    if (what == "speed") return editBy(balanceSpeed, std::move(ranks));
    if (!ranks.empty()) arguments.refuse("work is shared by all ranks");
    return editBy(balanceWork);
}

}  // namespace rankscope::edits

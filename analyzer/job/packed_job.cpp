// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/packed_job.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "collector/store/error.h"
#include "collector/team/packing.h"

namespace rankscope::costs {

template <typename Visit>
void forEachField(LinkPeaks& value, const Visit& visit) {
    auto& [intra, inter, intraOthers, interOthers, source, warnings, unknownDevices] = value;
    visit(intra, inter, intraOthers, interOthers, source, warnings, unknownDevices);
}

}  // namespace rankscope::costs

namespace rankscope::facts {

template <typename Visit>
void forEachField(Pipeline& value, const Visit& visit) {
    auto& [stages, microBatches, virtualStages, schedule, confidence] = value;
    visit(stages, microBatches, virtualStages, schedule, confidence);
}

template <typename Visit>
void forEachField(Layout& value, const Visit& visit) {
    auto& [dp, tp, pp, ep, sp, zero, zeroOr, shard, replicate, schedule, confidence, confidences, roles, uses,
           pipelines] = value;
    visit(dp, tp, pp, ep, sp, zero, zeroOr, shard, replicate, schedule, confidence, confidences, roles, uses,
          pipelines);
}

}  // namespace rankscope::facts

namespace rankscope::replay {

template <typename Visit>
void forEachField(TaskGraph& value, const Visit& visit) {
    auto& [durationNs, leadNs, before, firstEdge, edges, info, lanes, kernelKeys, exchanges, members, marks] = value;
    visit(durationNs, leadNs, before, firstEdge, edges, info, lanes, kernelKeys, exchanges, members, marks);
}

}  // namespace rankscope::replay

namespace rankscope::job {
namespace {

/// What edits read of a rank beside its tasks.
template <typename Visit>
void forEachPlayedField(facts::RankSummary& rank, const Visit& visit) {
    visit(rank.rank, rank.contention, rank.hostStalls, rank.hostPauses, rank.hostUse, rank.hostIsKnown);
}

/// All but the ranks, the cost, which follows from the rest, and the graph, which is much larger.
template <typename Visit>
void forEachSmallField(Analysis& analysis, const Visit& visit) {
    replay::ReplayModel& replay = analysis.replay;
    visit(analysis.peaks, analysis.layout, analysis.steps, analysis.stepNs, replay.unavailable, replay.notes,
          replay.leftOut, replay.steps, replay.measuredStepNs, replay.predictedStepNs, replay.edges);
}

/// A list is sent as it lies in memory, in parts of whole elements, small enough that a received part is still in the
/// processor's cache when it is copied.
constexpr size_t kPartBytes = size_t{1} << 20;

template <typename Value, typename Function>
void forEachPart(size_t count, const Function& function) {
    static_assert(std::is_trivially_copyable_v<Value>);
    constexpr size_t kMost = kPartBytes / sizeof(Value);
    for (size_t at = 0; at < count; at += kMost) function(at, std::min(kMost, count - at));
}

/// How long each list of the graph is, and how large an element: two builds that differ are told.
using Lengths = std::vector<std::pair<uint64_t, uint64_t>>;

Lengths lengthsOf(replay::TaskGraph& graph) {
    Lengths lengths;
    forEachField(graph, [&](const auto&... lists) { (lengths.emplace_back(lists.size(), sizeof lists[0]), ...); });
    return lengths;
}

[[noreturn]] void refuse(const std::string& sender) {
    throw store::Error(sender, "sent a job that this build of rankscope does not understand",
                       "start the same installation of rankscope on all nodes");
}

void takeGraph(replay::TaskGraph& graph, const Lengths& lengths, const std::function<std::string()>& receive,
               const std::string& sender) {
    size_t list = 0;
    const auto take = [&]<typename Value>(std::vector<Value>& values) {
        if (list >= lengths.size() || lengths[list].second != sizeof(Value)) refuse(sender);
        const size_t count = lengths[list++].first;
        values.clear();
        values.reserve(count);  // and not resized: to fill the elements first costs as much as to receive them
        forEachPart<Value>(count, [&](size_t, size_t elements) {
            const std::string part = receive();
            if (part.size() != elements * sizeof(Value)) refuse(sender);
            const auto* from = reinterpret_cast<const Value*>(part.data());
            values.insert(values.end(), from, from + elements);
        });
    };
    forEachField(graph, [&](auto&... lists) { (take(lists), ...); });
}

}  // namespace

void packForPlays(const Analysis& analysis, const std::vector<costs::NcclTestsTable>& tables,
                  const std::function<void(std::string_view)>& send) {
    auto& packed = const_cast<Analysis&>(analysis);  // only read
    team::Packer packer;
    const auto put = [&packer](const auto&... fields) { (packer(fields), ...); };
    put(tables, uint64_t{packed.ranks.size()});
    forEachSmallField(packed, put);
    for (facts::RankSummary& rank : packed.ranks) forEachPlayedField(rank, put);
    put(lengthsOf(packed.replay.graph));
    send(packer.take());
    const auto sendParts = [&]<typename Value>(const std::vector<Value>& list) {
        const auto* const data = reinterpret_cast<const char*>(list.data());
        forEachPart<Value>(list.size(), [&](size_t first, size_t elements) {
            send({data + first * sizeof(Value), elements * sizeof(Value)});
        });
    };
    forEachField(packed.replay.graph, [&](auto&... lists) { (sendParts(lists), ...); });
}

Analysis unpackForPlays(facts::TraceFacts facts, const std::function<std::string()>& receive,
                        const std::string& sender) {
    Analysis analysis;
    analysis.facts = std::move(facts);
    const std::string message = receive();
    team::Unpacker unpacker(message, sender);
    const auto take = [&unpacker](auto&... fields) { (unpacker(fields), ...); };
    std::vector<costs::NcclTestsTable> tables;
    uint64_t ranks = 0;
    take(tables, ranks);
    forEachSmallField(analysis, take);
    for (uint64_t i = 0; i < ranks; ++i) forEachPlayedField(analysis.ranks.emplace_back(), take);
    takeGraph(analysis.replay.graph, unpacker.get<Lengths>(), receive, sender);
    analysis.cost = costs::CollectiveCost(analysis.facts, analysis.peaks, tables);
    if (analysis.replay.graph.size() > 0) analysis.replay.unchanged = replay::simulate(analysis.replay.graph);
    return analysis;
}

}  // namespace rankscope::job

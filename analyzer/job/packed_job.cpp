// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/packed_job.h"

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "collector/team/long_lists.h"
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

/// The lists of a graph, whether its copies share them or not.
template <typename Value>
const std::vector<Value>& valuesOf(const std::vector<Value>& list) {
    return list;
}
template <typename Value>
const std::vector<Value>& valuesOf(const facts::SharedList<Value>& list) {
    return list.values();
}

/// What edits read of a rank beside its tasks.
template <typename Visit>
void forEachPlayedField(facts::RankSummary& rank, const Visit& visit) {
    visit(rank.rank, rank.contention, rank.hostStalls, rank.hostPauses, rank.hostUse, rank.hostIsKnown);
}

/// All but the ranks, the cost, which follows from the rest, and the graph, which is much larger. The graph's schedule
/// is not sent: few changes ask for it, and it is played for those (TrialGraph).
template <typename Visit>
void forEachSmallField(Analysis& analysis, const Visit& visit) {
    replay::ReplayModel& replay = analysis.replay;
    visit(analysis.peaks, analysis.layout, analysis.steps, analysis.stepNs, analysis.works, replay.unavailable,
          replay.notes, replay.leftOut, replay.steps, replay.unchangedStepsNs, replay.measuredStepNs,
          replay.predictedStepNs, replay.edges);
}

}  // namespace

void packForPlays(const Analysis& analysis, const std::vector<costs::NcclTestsTable>& tables,
                  const std::function<void(std::string_view)>& send) {
    auto& packed = const_cast<Analysis&>(analysis);  // only read
    team::Packer packer;
    const auto put = [&packer](const auto&... fields) { (packer(fields), ...); };
    put(tables, uint64_t{packed.ranks.size()});
    forEachSmallField(packed, put);
    for (const facts::RankSummary& rank : packed.ranks) forEachPlayedField(const_cast<facts::RankSummary&>(rank), put);
    send(packer.take());
    forEachField(packed.replay.graph, [&](const auto&... lists) { team::sendLists(send, valuesOf(lists)...); });
}

Analysis unpackForPlays(facts::TraceFacts facts, const std::function<std::string_view()>& receive,
                        const std::string& sender) {
    Analysis analysis;
    analysis.facts = std::move(facts);
    team::Unpacker unpacker(receive(), sender);
    const auto take = [&unpacker](auto&... fields) { (unpacker(fields), ...); };
    std::vector<costs::NcclTestsTable> tables;
    uint64_t ranks = 0;
    take(tables, ranks);
    forEachSmallField(analysis, take);
    std::vector<facts::RankSummary> summaries;
    for (uint64_t i = 0; i < ranks; ++i) forEachPlayedField(summaries.emplace_back(), take);
    analysis.ranks = std::move(summaries);
    forEachField(analysis.replay.graph, [&](auto&... lists) {
        std::tuple<std::vector<typename std::decay_t<decltype(lists)>::value_type>...> received;
        std::apply([&](auto&... values) { team::receiveLists(receive, sender, values...); }, received);
        std::tie(lists...) = std::move(received);
    });
    analysis.cost = costs::CollectiveCost(analysis.facts, analysis.peaks, tables);
    return analysis;
}

}  // namespace rankscope::job

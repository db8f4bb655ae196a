// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/edits/edit_arguments.h"

namespace rankscope::edits {
namespace {

bool growsWithRanks(facts::CommRole role) {
    return role == facts::CommRole::gradients || role == facts::CommRole::shardedParameters ||
           role == facts::CommRole::replicas;
}

}  // namespace

void Replicas::apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const {
    int changed = 0, present = 1;
    for (const replay::Exchange& exchange : graph.exchanges) {
        if (exchange.join == replay::kNoTask || exchange.bytes <= 0) continue;
        const facts::CommRole role = analysis.layout.role(exchange.communicatorId, exchange.op);
        if (!growsWithRanks(role)) continue;
        const facts::Communicator& before = analysis.facts.communicators.at(exchange.communicatorId);
        if (role == facts::CommRole::replicas ||
            (role == facts::CommRole::shardedParameters && analysis.layout.replicate.value_or(1) > 1))
            throw EditError("sharded layers with replicas can grow in two ways",
                            "dp-ranks is for one group of data-parallel ranks");
        if (before.size < 2)
            throw EditError(
                "a data-parallel rank alone sums nothing: what more of them would take cannot be told from it",
                "give the number of ranks that is wanted at once");
        present = before.size;
        facts::Communicator after = before;
        after.size = m_count;
        const int perNode = std::max(1, before.size / std::max(1, before.nodes));
        // One node says nothing of how many fit on it: it is taken to be full.
        after.nodes = m_count <= perNode ? 1 : (m_count + perNode - 1) / perNode;
        after.smallestNode = after.nodes == 1 ? m_count : std::min(perNode, m_count - (after.nodes - 1) * perNode);
        const std::optional<costs::LinkModel> now = costs::linkModel(analysis.peaks, before, exchange.op),
                                              then = costs::linkModel(analysis.peaks, after, exchange.op);
        if (!now || !then || now->alphaNs <= 0)
            throw EditError("what more ranks cost is unknown without the links",
                            "tell them: --links \"intra:gbps=…,alpha_us=…;inter:gbps=…,alpha_us=…\"");
        const auto bytes = static_cast<double>(exchange.bytes);
        const double factor = m_count == 1 ? 0
                                           : costs::cheapestNs(*then, exchange.op, m_count, bytes) /
                                                 costs::cheapestNs(*now, exchange.op, before.size, bytes);
        for (const replay::ExchangeMember& member : graph.membersOf(exchange))
            graph.durationNs[member.transfer] =
                std::llround(static_cast<double>(graph.durationNs[member.transfer]) * factor);
        ++changed;
        effect.communicators[before.id] = after;
        if (after.nodes > 1 && before.nodes == 1) effect.assume(fmt::format("a node holds {} of these ranks", perNode));
    }
    if (changed == 0)
        throw EditError("no data-parallel communication was seen", "dp-ranks is for jobs that sum gradients");
    effect.assume("each rank keeps its work, and its part of the optimizer");
    effect.dataParallel = m_count;
    effect.replicas *= static_cast<double>(m_count) / analysis.layout.dp.value_or(present);
}

std::unique_ptr<Edit> parseReplicas(EditArguments& arguments) {
    return std::make_unique<Replicas>(arguments.requiredWhole("count", 1));
}

}  // namespace rankscope::edits

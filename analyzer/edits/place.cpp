// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/graph_view.h"

namespace rankscope::edits {
namespace {

constexpr double kLarge =
    0.1;  // of the largest message on a class of links: of smaller ones start-up may be most of the time
constexpr size_t kUndisturbedShare =
    4;  // others beside them only slow transfers: the quickest quarter shows what a class of links does

using Hosts = std::map<int, int64_t>;  // by rank

Hosts presentHosts(const Analysis& analysis) {
    Hosts hosts;
    for (const facts::RankFacts& rank : analysis.facts.ranks) hosts[rank.rank] = rank.hostId;
    return hosts;
}

/// Groups that belong together: of the same role, size and operation.
std::vector<const facts::Communicator*> groupsLike(const Analysis& analysis, std::optional<int64_t> wanted) {
    std::vector<const facts::Communicator*> groups;
    const facts::Communicator* like = nullptr;
    for (const auto& [id, communicator] : analysis.facts.communicators)
        if (wanted ? id == *wanted : like == nullptr && analysis.layout.role(id) == facts::CommRole::activations)
            like = &communicator;
    if (like == nullptr)
        throw EditError("no tensor-parallel groups were seen",
                        "place:communicator=ID names one of the groups that are to be inside nodes");
    for (const auto& [id, communicator] : analysis.facts.communicators)
        if (communicator.size == like->size && analysis.layout.role(id) == analysis.layout.role(like->id))
            groups.push_back(&communicator);
    std::ranges::sort(groups, {}, &facts::Communicator::ranks);
    return groups;
}

/// Fills the present nodes, group after group; ranks outside of all groups take what is left.
Hosts placed(const Hosts& before, const std::vector<const facts::Communicator*>& groups) {
    std::vector<std::pair<int64_t, size_t>> room;  // by node, in the order of its ranks
    for (const auto& [rank, host] : before) {
        const auto at = std::ranges::find_if(room, [host = host](const auto& node) { return node.first == host; });
        if (at == room.end())
            room.emplace_back(host, 1);
        else
            ++at->second;
    }
    Hosts after;
    const auto put = [&](const std::vector<int>& ranks) {
        const auto at = std::ranges::find_if(room, [&](const auto& node) { return node.second >= ranks.size(); });
        if (at == room.end()) return false;
        at->second -= ranks.size();
        for (int rank : ranks) after[rank] = at->first;
        return true;
    };
    for (const facts::Communicator* group : groups) {
        std::vector<int> ranks;
        for (int rank : group->ranks)
            if (after.count(rank) == 0) ranks.push_back(rank);
        if (ranks.empty()) continue;
        if (ranks.size() != group->ranks.size())
            throw EditError("these groups share ranks", "name groups of which each rank is in one");
        if (!put(ranks))
            throw EditError(fmt::format("a group of {} ranks does not fit on a node", ranks.size()),
                            "fewer ranks in a group");
    }
    for (const auto& [rank, host] : before)
        if (after.count(rank) == 0) put({rank});
    return after;
}

facts::Communicator movedTo(const Hosts& hosts, facts::Communicator communicator) {
    std::map<int64_t, int> perHost;
    for (int rank : communicator.ranks) ++perHost[hosts.at(rank)];
    communicator.nodes = static_cast<int>(perHost.size());
    communicator.smallestNode = communicator.size;
    for (const auto& [host, count] : perHost) communicator.smallestNode = std::min(communicator.smallestNode, count);
    return communicator;
}

/// Prices of transfers on other links.
class Links {
  public:
    Links(const TaskGraph& graph, const Analysis& analysis) : m_peaks(analysis.peaks) {
        std::map<bool, int64_t> largest;
        for (const Exchange& exchange : graph.exchanges)
            if (exchange.join != kNoTask) {
                int64_t& most = largest[spansNodes(graph, analysis, exchange)];
                most = std::max(most, exchange.bytes);
            }
        std::map<bool, std::vector<double>> ratios;
        for (const Exchange& exchange : graph.exchanges) {
            const facts::Communicator* communicator = analysis.facts.findCommunicator(exchange.communicatorId);
            if (exchange.join == kNoTask || communicator == nullptr || exchange.bytes <= 0) continue;
            const bool across = communicator->nodes > 1;
            const auto bytes = static_cast<double>(exchange.bytes);
            if (bytes < kLarge * static_cast<double>(largest[across])) continue;
            const double expected = expectedNs(*communicator, exchange.op, bytes);
            const auto longest = static_cast<double>(graph.longestNs(exchange));
            if (expected > 0 && longest > 0) ratios[across].push_back(longest / expected);
        }
        for (auto& [across, values] : ratios) {
            std::ranges::sort(values);
            m_ratio[across] = values[values.size() / kUndisturbedShare];
        }
    }

    /// Time of a collective on `communicator`, ns.
    double expectedNs(const facts::Communicator& communicator, store::Op op, double bytes) const {
        const std::optional<costs::LinkModel> link = costs::linkModel(m_peaks, communicator, op);
        if (!link || link->alphaNs <= 0)
            throw EditError("what other links give is unknown",
                            "tell them: --links \"intra:gbps=…,alpha_us=…;inter:gbps=…,alpha_us=…\"");
        return costs::cheapestNs(*link, op, communicator.size, bytes);
    }

    /// Measured over expected time on links of a class; of the other one where nothing runs there.
    double ratio(bool across) const {
        const auto own = m_ratio.find(across);
        return own != m_ratio.end() ? own->second : m_ratio.empty() ? 1 : m_ratio.begin()->second;
    }

  private:
    const costs::LinkPeaks& m_peaks;
    std::map<bool, double> m_ratio;
};

double messageNs(const costs::LinkPeaks& peaks, bool across, double bytes) {
    const std::optional<costs::LinkModel> link = costs::linkModel(peaks, costs::pairOfRanks(across), store::Op::send);
    if (!link)
        throw EditError("what other links give a message is unknown",
                        "tell them: --links \"intra:gbps=…;inter:gbps=…\"");
    return link->alphaNs + bytes / link->bytesPerNs;
}

/// Ranks in another order: the groups of one role, tensor-parallel ones as a rule, are put inside nodes, group after
/// group onto the present nodes; all other groups end up where their ranks do. Whatever crosses other links than before
/// takes as long as what runs there already, in proportion to what the configured links and NCCL's formulas say of
/// both.
void placeGroups(std::optional<int64_t> wanted, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    if (wanted) checkCommunicator(analysis, *wanted);
    const std::vector<const facts::Communicator*> groups = groupsLike(analysis, wanted);
    if (std::ranges::none_of(groups, [](const facts::Communicator* group) { return group->nodes > 1; }))
        throw EditError("these groups are inside nodes already");
    for (const auto& [id, communicator] : analysis.facts.communicators)
        if (effect.dataParallel && static_cast<int>(communicator.ranks.size()) != communicator.size)
            throw EditError(fmt::format("communicator {} has {} ranks now, and only the {} recorded ones have a place",
                                        id, communicator.size, communicator.ranks.size()),
                            "place goes in front of dp-ranks");
    const Hosts before = presentHosts(analysis), after = placed(before, groups);
    const Links links(graph, analysis);
    changeTransfers(graph, [&](const TransferTask& transfer, const Exchange& exchange, int64_t ns) -> int64_t {
        const facts::Communicator* now = analysis.facts.findCommunicator(exchange.communicatorId);
        if (now == nullptr || exchange.bytes <= 0) return ns;
        if (exchange.message() && !exchange.grouped) {
            const int from = graph.membersOf(exchange).front().rank, to = graph.membersOf(exchange).back().rank;
            const bool wasAcross = before.at(from) != before.at(to), isAcross = after.at(from) != after.at(to);
            const auto bytes = static_cast<double>(std::max({transfer.bytesIn, transfer.bytesOut, exchange.bytes}));
            return wasAcross == isAcross ? ns
                                         : scaledNs(ns, messageNs(analysis.peaks, isAcross, bytes) /
                                                            messageNs(analysis.peaks, wasAcross, bytes));
        }
        const facts::Communicator then = movedTo(after, *now);
        if (then.nodes == now->nodes && then.smallestNode == now->smallestNode) return ns;
        const store::Op op = exchange.message() ? store::Op::allToAll : exchange.op;
        const auto bytes = static_cast<double>(exchange.message() ? std::max(transfer.bytesIn, transfer.bytesOut) *
                                                                        now->size / std::max(1, now->size - 1)
                                                                  : exchange.bytes);
        const double expected = links.expectedNs(then, op, bytes);
        return exchange.message() ? scaledNs(ns, expected / links.expectedNs(*now, op, bytes))
                                  : std::llround(expected * links.ratio(then.nodes > 1));
    });
    for (const auto& [id, communicator] : analysis.facts.communicators)
        effect.communicators[id] = movedTo(after, communicator);
    effect.hosts = after;
    effect.assume(
        "ranks are placed anew on the present nodes, and NCCL chooses its algorithms for the links that they use "
        "there");
}

}  // namespace

std::unique_ptr<Edit> parsePlace(EditArguments& arguments) {
    return editBy(placeGroups, arguments.communicator());
}

namespace {

/// More or fewer data-parallel ranks, each with the present work (weak scaling): collectives of gradients and of
/// sharded parameters take as long as NCCL's formulas say of so many ranks on the configured links, in proportion to
/// now. Nodes hold as many of them as now; ranks are added by whole nodes once a node is full.
void changeReplicas(int count, TaskGraph& graph, const Analysis& analysis, EditEffect& effect) {
    int present = 0;  // 0: none was seen
    for (const Exchange& exchange : graph.exchanges) {
        if (exchange.join == kNoTask || exchange.bytes <= 0) continue;
        const facts::CommRole role = analysis.layout.role(exchange.communicatorId, exchange.op);
        if (!growsWithReplicas(role)) continue;
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
        after.size = count;
        const int perNode = std::max(1, before.size / std::max(1, before.nodes));
        // One node says nothing of how many fit on it: it is taken to be full.
        after.nodes = count <= perNode ? 1 : (count + perNode - 1) / perNode;
        after.smallestNode = after.nodes == 1 ? count : std::min(perNode, count - (after.nodes - 1) * perNode);
        const std::optional<costs::LinkModel> now = costs::linkModel(analysis.peaks, before, exchange.op),
                                              then = costs::linkModel(analysis.peaks, after, exchange.op);
        if (!now || !then || now->alphaNs <= 0)
            throw EditError("what more ranks cost is unknown without the links",
                            "tell them: --links \"intra:gbps=…,alpha_us=…;inter:gbps=…,alpha_us=…\"");
        const auto bytes = static_cast<double>(exchange.bytes);
        const double factor = count == 1 ? 0
                                         : costs::cheapestNs(*then, exchange.op, count, bytes) /
                                               costs::cheapestNs(*now, exchange.op, before.size, bytes);
        for (const ExchangeMember& member : graph.membersOf(exchange))
            graph.durationNs[member.transfer] = scaledNs(graph.durationNs[member.transfer], factor);
        effect.communicators[before.id] = after;
        if (after.nodes > 1 && before.nodes == 1) effect.assume(fmt::format("a node holds {} of these ranks", perNode));
    }
    if (present == 0)
        throw EditError("no data-parallel communication was seen", "dp-ranks is for jobs that sum gradients");
    effect.assume("each rank keeps its work, and its part of the optimizer");
    effect.dataParallel = count;
    effect.replicas *= static_cast<double>(count) / analysis.layout.dp.value_or(present);
}

}  // namespace

std::unique_ptr<Edit> parseReplicas(EditArguments& arguments) {
    return editBy(changeReplicas, arguments.requiredWhole("count", 1));
}

}  // namespace rankscope::edits

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/cost_evidence.h"

#include <algorithm>
#include <vector>

#include "analyzer/facts/statistics.h"

namespace rankscope::costs {
namespace {

std::optional<CollectivePrice> priceOf(const CostCurve& curve) {
    const bool rows = curve.key.from == EvidenceFrom::ncclTests;
    CollectivePrice::Sizes sizes;
    // One row of nccl-tests is the mean of many iterations that tells no error: it is off a line by as much as others.
    for (const auto& [bytes, times] : curve.timesBySize) {
        if (times.size() < (rows ? 1 : CostCurve::kFewestAtOneSize)) continue;
        const double typical = facts::median(times);
        sizes[bytes] = {typical, times.size() > 1 ? facts::medianError(times) : CostLine::kError * typical / 2,
                        curve.key.choice};
    }
    if (sizes.empty()) return std::nullopt;
    return CollectivePrice(curve.key.op, curve.key.shape.ranks, std::move(sizes), std::nullopt, {});
}

struct Transfer {
    int64_t id = 0;
    int64_t communicatorId = 0;
    int64_t durNs = 0;
    int64_t besideNs = 0;
};

struct Edge {
    int64_t atNs = 0;
    bool begins = false;
    size_t transfer = 0;
    auto operator<=>(const Edge&) const = default;  // by time
};

/// Goes over one rank's edges in time with the few transfers that are under way.
void addBeside(std::vector<Transfer>& transfers, std::vector<Edge>& edges) {
    std::ranges::sort(edges);
    std::vector<size_t> active;
    int64_t sinceNs = 0;
    for (const Edge& edge : edges) {
        const bool several = std::ranges::any_of(
            active, [&](size_t i) { return transfers[i].communicatorId != transfers[active.front()].communicatorId; });
        if (several)
            for (size_t i : active) transfers[i].besideNs += edge.atNs - sinceNs;
        sinceNs = edge.atNs;
        const auto at = std::ranges::find(active, edge.transfer);
        if (edge.begins)
            active.push_back(edge.transfer);
        else if (at != active.end())
            active.erase(at);
    }
}

}  // namespace

size_t CostCurve::samples() const {
    size_t count = 0;
    for (const auto& [bytes, times] : timesBySize) count += times.size();
    return count;
}

std::optional<facts::Estimate> CostCurve::at(double bytes) const {
    if (!price || bytes * kExtrapolation < timesBySize.begin()->first ||
        bytes > timesBySize.rbegin()->first * kExtrapolation)
        return std::nullopt;
    return price->ns(bytes);
}

CostEvidence::CostEvidence(const facts::TraceFacts& facts, const std::vector<NcclTestsTable>& tables) {
    for (const store::Collective& collective : facts.collectives) {
        const facts::Communicator* communicator = facts.findCommunicator(collective.communicatorId);
        const AlgorithmChoice choice{collective.algorithm, collective.protocol};
        if (communicator == nullptr || !collective.complete || !choice.known()) continue;
        if (collective.bytes.value_or(0) <= 0 || collective.transferNs.value_or(0) <= 0) continue;
        const CurveKey key{EvidenceFrom::trace, shapeOf(*communicator), collective.op, choice};
        add(key, static_cast<double>(*collective.bytes), static_cast<double>(*collective.transferNs));
    }
    for (const NcclTestsTable& table : tables) {
        const CurveKey key{
            EvidenceFrom::ncclTests, {table.nodes, table.ranks}, table.op, {table.algorithm, table.protocol}};
        for (const NcclTestsRow& row : table.rows) add(key, static_cast<double>(row.bytes), table.timeUs(row) * 1000);
        m_curves[key].files.push_back(table.file);
    }
    for (auto& [key, curve] : m_curves) {
        curve.key = key;
        curve.line = lineThrough(curve.timesBySize, key.op, key.shape.ranks);
        curve.price = priceOf(curve);
    }
}

void CostEvidence::add(const CurveKey& key, double bytes, double ns) {
    if (bytes > 0 && ns > 0) m_curves[key].timesBySize[bytes].push_back(ns);
    m_seen.algorithms.insert(key.choice.algorithm);
    m_seen.protocols.insert(key.choice.protocol);
}

const CostCurve* CostEvidence::find(const CurveKey& key) const {
    const auto at = m_curves.find(key);
    return at == m_curves.end() ? nullptr : &at->second;
}

std::map<int64_t, double> sharedTransfers(const facts::TraceFacts& facts) {
    std::map<int64_t, double> shares;
    std::vector<Transfer> transfers;  // of one rank
    std::vector<Edge> edges;
    for (size_t i = 0; i < facts.members.size(); ++i) {
        const store::CollectiveMember& member = facts.members[i];
        const store::Collective* collective = facts.findCollective(member.collectiveId);
        if (collective != nullptr && member.endNs && collective->transferNs.value_or(0) > 0) {
            edges.push_back({*member.endNs - *collective->transferNs, true, transfers.size()});
            edges.push_back({*member.endNs, false, transfers.size()});
            transfers.push_back({collective->id, collective->communicatorId, *collective->transferNs});
        }
        if (i + 1 < facts.members.size() && facts.members[i + 1].rank == member.rank) continue;
        addBeside(transfers, edges);
        for (const Transfer& transfer : transfers) {
            if (transfer.besideNs <= 0) continue;
            double& share = shares[transfer.id];
            share = std::max(share, static_cast<double>(transfer.besideNs) / static_cast<double>(transfer.durNs));
        }
        transfers.clear();
        edges.clear();
    }
    return shares;
}

}  // namespace rankscope::costs

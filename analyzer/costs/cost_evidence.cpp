// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/cost_evidence.h"

#include <algorithm>
#include <cmath>

#include "analyzer/facts/statistics.h"

namespace rankscope::costs {

std::optional<MeasuredTime> CostCurve::at(double bytes) const {
    // nccl-tests prints the mean of many iterations: one row is a measurement.
    const size_t fewest = key.from == EvidenceFrom::ncclTests ? 1 : kFewestAtOneSize;
    if (const auto exact = timesBySize.find(bytes); exact != timesBySize.end() && exact->second.size() >= fewest) {
        const double typical = facts::median(exact->second);
        return MeasuredTime{typical,
                            exact->second.size() > 1 ? facts::medianError(exact->second) / typical : fit.residual};
    }
    if (!fit.holdsAt(bytes)) return std::nullopt;
    return MeasuredTime{fit.timeNs(bytes), std::hypot(fit.residual, fit.scatter)};
}

CostEvidence::CostEvidence(const facts::TraceFacts& facts, const std::vector<NcclTestsTable>& tables) {
    for (const store::Collective& collective : facts.collectives) {
        const auto communicator = facts.communicators.find(collective.communicatorId);
        if (communicator == facts.communicators.end() || !collective.complete) continue;
        if (collective.bytes.value_or(0) <= 0 || collective.transferNs.value_or(0) <= 0) continue;
        if (collective.algorithm == store::Algorithm::unknown || collective.protocol == store::Protocol::unknown)
            continue;
        const CurveKey key{EvidenceFrom::trace,
                           shapeOf(communicator->second),
                           collective.op,
                           {collective.algorithm, collective.protocol}};
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
        curve.fit = fitPieces(curve.samples);
    }
}

void CostEvidence::add(const CurveKey& key, double bytes, double ns) {
    CostCurve& curve = m_curves[key];
    curve.samples.push_back({bytes, ns});
    curve.timesBySize[bytes].push_back(ns);
    m_seen.algorithms.insert(key.choice.algorithm);
    m_seen.protocols.insert(key.choice.protocol);
}

const CostCurve* CostEvidence::find(const CurveKey& key) const {
    const auto at = m_curves.find(key);
    return at == m_curves.end() ? nullptr : &at->second;
}

}  // namespace rankscope::costs

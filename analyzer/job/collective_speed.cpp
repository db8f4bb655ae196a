// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/collective_speed.h"

#include <algorithm>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::job {

std::set<int64_t> sharedCollectives(const Analysis& analysis) {
    std::set<int64_t> shared;
    for (const facts::RankSummary& rank : analysis.ranks) {
        const std::vector<facts::CommTask>& tasks = rank.communication;
        for (size_t i = 0; i < tasks.size(); ++i) {
            const int64_t from = tasks[i].startNs + tasks[i].waitNs;
            const auto most = static_cast<int64_t>(CollectiveSpeedThresholds::kSharedShare *
                                                   static_cast<double>(tasks[i].transferNs()));
            // Both directions: each task of a pair may be disturbed.
            for (size_t k = i + 1; k < tasks.size() && tasks[k].startNs < tasks[i].endNs; ++k) {
                const int64_t together =
                    std::min(tasks[i].endNs, tasks[k].endNs) - std::max(from, tasks[k].startNs + tasks[k].waitNs);
                if (together <= 0) continue;
                if (together > most) shared.insert(tasks[i].collectiveId);
                if (static_cast<double>(together) >
                    CollectiveSpeedThresholds::kSharedShare * static_cast<double>(tasks[k].transferNs()))
                    shared.insert(tasks[k].collectiveId);
            }
        }
    }
    return shared;
}

std::vector<LargeCollective> largeCollectives(const Analysis& analysis, const facts::Communicator& communicator,
                                              const std::set<int64_t>& shared) {
    std::vector<LargeCollective> result;
    if (communicator.size < 2) return result;
    for (const store::Collective& collective : analysis.facts.collectives) {
        if (collective.communicatorId != communicator.id || !collective.step || !collective.transferNs ||
            *collective.transferNs <= 0)
            continue;
        if (!collective.bytes || *collective.bytes <= 0 || !store::isSynchronizing(collective.op) ||
            shared.count(collective.id) != 0)
            continue;
        if (!std::binary_search(analysis.steps.begin(), analysis.steps.end(), *collective.step)) continue;
        const std::optional<costs::LinkModel> link = costs::linkToCompare(analysis.peaks, communicator, collective.op);
        if (!link) continue;
        const auto bytes = static_cast<double>(*collective.bytes);
        double expected = costs::collectiveNs(*link, collective.op, communicator.size, bytes,
                                              {collective.algorithm, collective.protocol})
                              .high;
        const double alpha = link->alphaNs > 0 ? link->alphaNs : costs::unknownAlphaNs(communicator.nodes > 1);
        const double startup = costs::collectiveNs({alpha, link->bytesPerNs}, collective.op, communicator.size, 0,
                                                   {collective.algorithm, collective.protocol})
                                   .high;
        if (startup > CollectiveSpeedThresholds::kStartupShare * expected) continue;
        // A link this slow leaves the protocol what its format does.
        if (static_cast<double>(*collective.transferNs) >= costs::kSlowLink * expected)
            expected = costs::linkBoundNs(*link, collective.op, communicator.size, bytes,
                                          {collective.algorithm, collective.protocol});
        result.push_back({&collective, static_cast<double>(*collective.transferNs), expected});
    }
    return result;
}

std::optional<double> slownessOf(const std::vector<LargeCollective>& collectives) {
    if (collectives.size() < CollectiveSpeedThresholds::kFewest) return std::nullopt;
    std::vector<double> values;
    for (const LargeCollective& c : collectives) values.push_back(c.slowness());
    return facts::median(std::move(values));
}

}  // namespace rankscope::job

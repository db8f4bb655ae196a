// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/link_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/job/collective_speed.h"
#include "analyzer/job/exchange_probes.h"
#include "analyzer/job/undisturbed_messages.h"
#include "analyzer/text/units.h"

namespace rankscope::job {
namespace {

constexpr size_t kProbeRows = 2;  // evidence rows per probe

const char* peakName(bool atLeast) {
    return atLeast ? "the best that this job reached" : "the link's peak";
}

void addCollectives(const Analysis& analysis, std::vector<LinkProbe>& probes) {
    const std::set<int64_t> shared = sharedCollectives(analysis);
    for (const auto& [id, communicator] : analysis.facts.communicators) {
        const std::vector<LargeCollective> large = largeCollectives(analysis, communicator, shared);
        const std::optional<double> slowness = slownessOf(large);
        if (!slowness) continue;
        LinkProbe probe;
        probe.communicatorId = id;
        probe.betweenNodes = communicator.nodes > 1;
        probe.ranks = communicator.ranks;
        probe.slowness = *slowness;
        probe.samples = large.size();
        std::vector<double> rates;
        for (const LargeCollective& c : large)
            rates.push_back(static_cast<double>(*c.collective->bytes) *
                            facts::busFactor(c.collective->op, communicator.size) / c.transferNs);
        probe.busBytesPerNs = facts::median(rates);
        probe.atLeast = analysis.peaks.atLeast(communicator);
        probe.peakBytesPerNs = costs::linkModel(analysis.peaks, communicator, large.front().collective->op)->bytesPerNs;
        for (size_t i = 0; i < std::min(kProbeRows, large.size()); ++i)
            probe.rows.push_back(
                {"collective", large[i].collective->id, communicator.ranks.front(),
                 fmt::format("{} of {} took {:.1f} times what {} gives", store::toText(large[i].collective->op),
                             text::bytesText(static_cast<double>(*large[i].collective->bytes)), large[i].slowness(),
                             peakName(probe.atLeast))});
        probes.push_back(std::move(probe));
    }
}

void addPairs(const Analysis& analysis, std::vector<LinkProbe>& probes) {
    struct Samples {
        std::vector<double> slowness, rates;
        std::vector<EvidenceRow> rows;
        int64_t communicatorId = 0;
        double peak = 0;
        bool betweenNodes = false;
        bool atLeast = false;
    };
    std::map<std::pair<int, int>, Samples> pairs;
    for (const auto& [row, transferNs] : undisturbedMessages(analysis)) {
        const store::P2p& message = *row;
        const bool inside = analysis.facts.sameHost({message.srcRank, message.dstRank});
        const facts::Communicator pair = costs::pairOfRanks(!inside);
        const std::optional<costs::LinkModel> link = costs::linkToCompare(analysis.peaks, pair, store::Op::send);
        if (!link) continue;
        const double expected = link->alphaNs + static_cast<double>(*message.bytes) / link->bytesPerNs;
        if (link->alphaNs > CollectiveSpeedThresholds::kStartupShare * expected) continue;
        // Between hosts the arrivals are known to the clock's bound only.
        if (!inside && static_cast<double>(analysis.facts.clock.boundNs) > 0.1 * expected) continue;
        Samples& samples = pairs[{message.srcRank, message.dstRank}];
        samples.slowness.push_back(transferNs / expected);
        samples.rates.push_back(static_cast<double>(*message.bytes) / transferNs);
        samples.communicatorId = message.communicatorId;
        samples.peak = link->bytesPerNs;
        samples.betweenNodes = !inside;
        samples.atLeast = analysis.peaks.atLeast(pair, store::Op::send);
        if (samples.rows.size() < kProbeRows)
            samples.rows.push_back(
                {"p2p", message.id, message.srcRank,
                 fmt::format("{} took {:.1f} times what {} gives", text::bytesText(static_cast<double>(*message.bytes)),
                             samples.slowness.back(), peakName(samples.atLeast))});
    }
    // NCCL reaches less of a link with messages than with collectives, and how much less nobody knows: where only what
    // was reached is known, messages are compared with messages.
    std::map<bool, double> fastest;
    for (const auto& [ends, samples] : pairs) {
        if (!samples.atLeast || samples.slowness.size() < CollectiveSpeedThresholds::kFewest) continue;
        const double slowness = facts::median(samples.slowness);
        const auto [best, fresh] = fastest.try_emplace(samples.betweenNodes, slowness);
        if (!fresh) best->second = std::min(best->second, slowness);
    }
    for (auto& [ends, samples] : pairs) {
        if (samples.slowness.size() < CollectiveSpeedThresholds::kFewest) continue;
        const double unit = samples.atLeast ? fastest.at(samples.betweenNodes) : 1;
        LinkProbe probe;
        probe.communicatorId = samples.communicatorId;
        probe.pair = true;
        probe.betweenNodes = samples.betweenNodes;
        probe.ranks = {ends.first, ends.second};
        probe.samples = samples.slowness.size();
        probe.slowness = facts::median(samples.slowness) / unit;
        probe.busBytesPerNs = facts::median(samples.rates);
        probe.peakBytesPerNs = samples.peak / unit;
        probe.atLeast = samples.atLeast;
        probe.rows = std::move(samples.rows);
        probes.push_back(std::move(probe));
    }
}

}  // namespace

bool LinkProbe::slow() const {
    return slowness >= LinkProbeThresholds::kSlow;
}

bool LinkProbe::touches(int rank) const {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::vector<LinkProbe> probeLinks(const Analysis& analysis) {
    std::vector<LinkProbe> probes;
    addCollectives(analysis, probes);
    addPairs(analysis, probes);
    for (LinkProbe& probe : exchangeProbes(analysis)) probes.push_back(std::move(probe));
    return probes;
}

}  // namespace rankscope::job

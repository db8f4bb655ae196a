// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/clock_alignment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "collector/ingest/message_ends.h"

namespace rankscope::collector {
namespace {

using HostPair = std::pair<int32_t, int32_t>;
using SamplesByPair =
    std::map<HostPair, std::vector<ClockSample>>;  // first < second; hostNs is second's, referenceNs first's

/// All pairs of more points than this would take long and tell no more.
constexpr size_t kMaxSlopePoints = 256;
constexpr size_t kMinSlopePoints = 8;
/// What the clocks of two hosts may differ by when nothing ties them: NTP on a local network.
constexpr int64_t kUntiedBoundNs = 10'000'000;

template <typename Value>
Value medianOf(std::vector<Value>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

int64_t percentile95(std::vector<int64_t> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, static_cast<size_t>(0.95 * static_cast<double>(values.size())))];
}

std::vector<ClockSample> thinned(const std::vector<ClockSample>& samples, size_t most) {
    if (samples.size() <= most) return samples;
    std::vector<ClockSample> kept;
    for (size_t i = 0; i < most; ++i) kept.push_back(samples[i * (samples.size() - 1) / (most - 1)]);
    return kept;
}

/// Theil-Sen: the median of the slopes between all pairs.
double medianSlope(const std::vector<ClockSample>& samples) {
    std::vector<double> slopes;
    for (size_t i = 0; i < samples.size(); ++i) {
        for (size_t j = i + 1; j < samples.size(); ++j) {
            const double span = static_cast<double>(samples[j].hostNs - samples[i].hostNs);
            if (span == 0) continue;
            const double change = static_cast<double>((samples[j].referenceNs - samples[j].hostNs) -
                                                      (samples[i].referenceNs - samples[i].hostNs));
            slopes.push_back(change / span);
        }
    }
    return slopes.empty() ? 0 : medianOf(slopes);
}

void centre(ClockFit& fit, const std::vector<ClockSample>& samples) {
    fit.offsetNs = 0;
    std::vector<int64_t> offsets;
    for (const ClockSample& sample : samples) offsets.push_back(sample.referenceNs - fit.apply(sample.hostNs));
    fit.offsetNs = medianOf(offsets);
}

int64_t scatterOf(const ClockFit& fit, const std::vector<ClockSample>& samples) {
    std::vector<int64_t> distances;
    for (const ClockSample& sample : samples)
        distances.push_back(std::llabs(sample.referenceNs - fit.apply(sample.hostNs)));
    return percentile95(std::move(distances));
}

/// reference time of a, taken through b: first b's fit, then b's host's.
ClockFit through(const ClockFit& toNeighbour, const ClockFit& neighbour) {
    ClockFit fit = toNeighbour;
    fit.offsetNs = neighbour.apply(toNeighbour.apply(toNeighbour.anchorNs)) - toNeighbour.anchorNs;
    fit.driftPpb = toNeighbour.driftPpb + neighbour.driftPpb;
    fit.boundNs = toNeighbour.boundNs + neighbour.boundNs;
    return fit;
}

/// Earliest end per host of one instance; earliest, because a rank that was descheduled in its kernel's tail ends late
/// but never early.
struct HostEnds {
    std::map<int32_t, std::pair<int64_t, int64_t>> firstAndLast;
    void add(int32_t host, int64_t endNs) {
        const auto [place, isNew] = firstAndLast.try_emplace(host, endNs, endNs);
        if (isNew) return;
        place->second.first = std::min(place->second.first, endNs);
        place->second.second = std::max(place->second.second, endNs);
    }
};

void addSamples(const HostEnds& ends, SamplesByPair& samples) {
    for (auto a = ends.firstAndLast.begin(); a != ends.firstAndLast.end(); ++a) {
        for (auto b = std::next(a); b != ends.firstAndLast.end(); ++b) {
            samples[{a->first, b->first}].push_back({b->second.first, a->second.first});
        }
    }
}

void assignHosts(const std::vector<RankSummary>& summaries, HostClocks& clocks) {
    std::map<std::pair<std::string, std::string>, int32_t> known;
    for (const RankSummary& summary : summaries) {  // summaries come by rank
        const auto [place, isNew] =
            known.try_emplace({summary.hostName, summary.bootId}, static_cast<int32_t>(known.size()));
        if (isNew) clocks.hosts.push_back({summary.hostName, summary.bootId, {}, "none"});
        clocks.hostOfSummary.push_back(place->second);
    }
}

/// Samples of collectives, and how far apart the ranks of one host leave an instance (their clocks are one: this is
/// transfer skew and CUPTI's error).
SamplesByPair collectiveSamples(const std::vector<RankSummary>& summaries, const InstanceGroups& collectives,
                                const HostClocks& clocks, int64_t& sameHostSpreadNs) {
    SamplesByPair samples;
    std::vector<int64_t> spreads;
    for (const InstanceGroup& group : collectives.groups) {
        HostEnds ends;
        for (size_t i = group.first; i < group.last; ++i) {
            const MemberCall& member = collectives.calls[i];
            const CallFact& call =
                summaries[static_cast<size_t>(member.summary)].calls[static_cast<size_t>(member.call)];
            if (call.kernelIndex < 0 || !store::isSynchronizing(call.op)) continue;
            ends.add(clocks.hostOfSummary[static_cast<size_t>(member.summary)], call.endNs);
        }
        for (const auto& [host, range] : ends.firstAndLast) spreads.push_back(range.second - range.first);
        addSamples(ends, samples);
    }
    sameHostSpreadNs = spreads.empty() ? 0 : medianOf(spreads);
    return samples;
}

SamplesByPair endsOf(const std::vector<RankSummary>& summaries, const std::vector<MessagePair>& messages,
                     const HostClocks& clocks) {
    SamplesByPair samples;
    for (const MessagePair& message : messages) {
        if (message.sendCall < 0 || message.recvCall < 0) continue;
        const CallFact& send =
            summaries[static_cast<size_t>(message.sendSummary)].calls[static_cast<size_t>(message.sendCall)];
        const CallFact& recv =
            summaries[static_cast<size_t>(message.recvSummary)].calls[static_cast<size_t>(message.recvCall)];
        if (send.kernelIndex < 0 || recv.kernelIndex < 0) continue;
        HostEnds ends;
        ends.add(clocks.hostOfSummary[static_cast<size_t>(message.sendSummary)], send.endNs);
        ends.add(clocks.hostOfSummary[static_cast<size_t>(message.recvSummary)], recv.endNs);
        addSamples(ends, samples);
    }
    return samples;
}

/// Of a pair of hosts, the messages that both kernels end with, where they are enough to tell drift and scatter; else
/// all: where groups hold their kernels, the bound says so.
SamplesByPair messageSamples(const std::vector<RankSummary>& summaries, const std::vector<MessagePair>& messages,
                             const HostClocks& clocks) {
    SamplesByPair samples = endsOf(summaries, messages, clocks);
    for (auto& [pair, together] :
         endsOf(summaries, messagesThatEndTogether(summaries, messages, clocks.hostOfSummary), clocks))
        if (together.size() >= kMinSlopePoints) samples[pair] = std::move(together);
    return samples;
}

/// Ties hosts to those already tied, the pair with most samples first, until nothing more can be tied.
void spreadFrom(const SamplesByPair& samples, std::vector<bool>& tied, HostClocks& clocks) {
    while (true) {
        const std::vector<ClockSample>* best = nullptr;
        HostPair bestPair;
        for (const auto& [pair, list] : samples) {
            const bool joins = tied[static_cast<size_t>(pair.first)] != tied[static_cast<size_t>(pair.second)];
            if (joins && (!best || list.size() > best->size())) {
                best = &list;
                bestPair = pair;
            }
        }
        if (!best) return;
        const bool forward = tied[static_cast<size_t>(bestPair.first)];
        std::vector<ClockSample> list = *best;
        if (!forward) {
            for (ClockSample& sample : list) std::swap(sample.hostNs, sample.referenceNs);
        }
        const auto from = static_cast<size_t>(forward ? bestPair.first : bestPair.second);
        const auto to = static_cast<size_t>(forward ? bestPair.second : bestPair.first);
        clocks.hosts[to].fit = through(fitClock(std::move(list)), clocks.hosts[from].fit);
        clocks.hosts[to].method = "collectives";
        tied[to] = true;
    }
}

}  // namespace

int64_t ClockFit::apply(int64_t hostNs) const noexcept {
    const __int128 drift = static_cast<__int128>(driftPpb) * (hostNs - anchorNs);
    // Rounded down for either sign, so that the order of times is kept.
    const __int128 billion = 1'000'000'000;
    __int128 quotient = drift / billion;
    if (drift % billion < 0) --quotient;
    return hostNs + offsetNs + static_cast<int64_t>(quotient);
}

ClockFit fitClock(std::vector<ClockSample> samples) {
    ClockFit fit;
    if (samples.empty()) return fit;
    std::sort(samples.begin(), samples.end(),
              [](const ClockSample& a, const ClockSample& b) { return a.hostNs < b.hostNs; });
    fit.samples = static_cast<int64_t>(samples.size());
    fit.anchorNs = samples.front().hostNs;
    centre(fit, samples);
    fit.boundNs = scatterOf(fit, samples);
    if (samples.size() < kMinSlopePoints) return fit;

    ClockFit sloped = fit;
    sloped.driftPpb = static_cast<int64_t>(std::llround(medianSlope(thinned(samples, kMaxSlopePoints)) * 1e9));
    centre(sloped, samples);
    sloped.boundNs = scatterOf(sloped, samples);
    return sloped.boundNs < fit.boundNs ? sloped : fit;
}

HostClocks alignClocks(const std::vector<RankSummary>& summaries, const InstanceGroups& collectives,
                       const std::vector<MessagePair>& messages) {
    HostClocks clocks;
    assignHosts(summaries, clocks);
    if (clocks.hosts.empty()) return clocks;
    int64_t sameHostSpreadNs = 0;
    const SamplesByPair samples = collectiveSamples(summaries, collectives, clocks, sameHostSpreadNs);
    std::vector<bool> tied(clocks.hosts.size(), false);
    tied[0] = true;
    clocks.hosts[0].method = "reference";
    spreadFrom(samples, tied, clocks);
    if (std::find(tied.begin(), tied.end(), false) != tied.end())
        spreadFrom(messageSamples(summaries, messages, clocks), tied, clocks);
    for (size_t host = 0; host < clocks.hosts.size(); ++host) {
        // Without a tie the hosts' own setting of their clocks is all there is.
        clocks.hosts[host].fit.boundNs += tied[host] ? sameHostSpreadNs : kUntiedBoundNs;
    }

    std::optional<int64_t> origin;
    for (size_t s = 0; s < summaries.size(); ++s) {
        if (summaries[s].firstNs > summaries[s].lastNs) continue;
        const int64_t firstNs =
            clocks.hosts[static_cast<size_t>(clocks.hostOfSummary[s])].fit.apply(summaries[s].firstNs);
        origin = origin ? std::min(*origin, firstNs) : firstNs;
    }
    clocks.originNs = origin.value_or(0);
    return clocks;
}

}  // namespace rankscope::collector

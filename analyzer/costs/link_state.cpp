// SPDX-License-Identifier: Apache-2.0
// Reads what the times of a communicator's operation tell of its link, and of what the protocols reach on it.
#include <algorithm>
#include <cmath>

#include "analyzer/costs/collective_price.h"
#include "analyzer/facts/operation.h"

namespace rankscope::costs {
namespace {

constexpr double kMostlyLatency = 0.8;  // share of a time from which on it speaks for the latency

/// Returns where a value lies in its range, 0 at the low end.
Range placesOf(const Range& known, const Range& range) {
    if (range.high <= range.low) return {0, 1};
    return {(known.low - range.low) / (range.high - range.low), (known.high - range.low) / (range.high - range.low)};
}

Range atPlaces(const Range& range, const Range& places) {
    const auto at = [&](double place) { return range.low + std::clamp(place, 0.0, 1.0) * (range.high - range.low); };
    return {at(places.low), at(places.high)};
}

/// Returns `value` as far as it lies in `range`.
Range within(const Range& value, const Range& range) {
    return {std::clamp(value.low, range.low, range.high), std::clamp(value.high, range.low, range.high)};
}

}  // namespace

/// Returns the latency hops of a choice as the formulas know it: what they do not know counts as a ring, of which
/// everything may be latency or nothing.
Range CollectivePrice::latencyHops(AlgorithmChoice choice) const {
    const Range hops = costs::latencyHops(m_state->link, m_op, m_ranks, choice);
    return {isModelled(m_op, choice) ? hops.low : 0, hops.high};
}

/// Stated values hold as far as they and the formulas explain the times. What they leave lies in the rate or in the
/// latency.
void CollectivePrice::readState() {
    readLatency();
    std::optional<Range> rate;
    for (const auto& [choice, sizes] : m_lines) {
        const auto& [bytes, largest] = *sizes.rbegin();
        const facts::Estimate start = latency(choice, false);
        if (!isModelled(m_op, choice) || start.high > kMostlyLatency * largest.ns)
            continue;  // tells nothing of the rate
        const Range share = bandwidthShare(m_state->link, m_op, choice, bytes);
        const auto rateBehind = [&, busBytes = bytes * facts::busFactor(m_op, m_ranks),
                                 ns = largest.ns](double startNs) { return busBytes / (ns - startNs); };
        const double least = rateBehind(start.low) / share.high, most = rateBehind(start.high) / share.low;
        if (!rate)
            rate = Range{least, most};
        else if (least <= rate->high && most >= rate->low)
            rate = Range{std::max(rate->low, least), std::min(rate->high, most)};
        else
            rate = Range{std::min(rate->low, least), std::max(rate->high, most)};
    }
    if (!rate) return;
    const double peak = m_state->link.bytesPerNs, low = std::min(rate->low, peak), high = std::min(rate->high, peak);
    m_state->bytesPerNs = {low, high >= peak ? peak : std::sqrt(low * high), high};
}

/// Reads the share of the bandwidth that a protocol reaches here, and its share of the latency, where its messages are
/// large or small enough to tell.
void CollectivePrice::readShares() {
    const facts::Estimate &alpha = m_state->alphaNs, &rate = m_state->bytesPerNs;
    const double least = rate.expected >= rate.high ? rate.expected : rate.low;
    for (const auto& [choice, sizes] : m_lines) {
        if (!isModelled(m_op, choice)) continue;
        const auto& [largeBytes, large] = *sizes.rbegin();
        const auto& [smallBytes, small] = *sizes.begin();
        const Range bandwidth = bandwidthShare(m_state->link, m_op, choice, largeBytes), hops = latencyHops(choice);
        const Range ofSmall = bandwidthShare(m_state->link, m_op, choice, smallBytes);
        const facts::Estimate start = latency(choice, false);
        const auto share = [&, busBytes = largeBytes * facts::busFactor(m_op, m_ranks), ns = large.ns](
                               double startNs, double bytesPerNs) {
            return busBytes / std::max(ns - startNs, (1 - kMostlyLatency) * ns) / bytesPerNs;
        };
        const Range reached = within({share(start.low, rate.high), share(start.high, least)}, bandwidth);
        const Range places = placesOf(reached, bandwidth), smallReached = atPlaces(ofSmall, places);
        const auto startNs = [&, busBytes = smallBytes * facts::busFactor(m_op, m_ranks), ns = small.ns](
                                 double part, double bytesPerNs) { return ns - busBytes / (part * bytesPerNs); };
        const Range begun = within(
            {startNs(smallReached.low, least) / alpha.expected, startNs(smallReached.high, rate.high) / alpha.expected},
            hops);
        m_shares.push_back({choice, places, placesOf(begun, hops)});
    }
}

Range CollectivePrice::bandwidthOf(AlgorithmChoice choice, double bytes) const {
    const Range range = bandwidthShare(m_state->link, m_op, choice, bytes);
    std::optional<Range> known;
    for (const Shares& seen : m_shares) {
        const Range& places = seen.bandwidth;
        if (seen.choice == choice) return atPlaces(range, places);
        if (seen.choice.protocol != choice.protocol) continue;
        known = atPlaces(range, {places.low - kSameProtocol, places.high + kSameProtocol});
    }
    return known.value_or(range);
}

Range CollectivePrice::knownLatencyHops(AlgorithmChoice choice) const {
    const Range range = latencyHops(choice);
    std::optional<Range> known;
    for (const Shares& seen : m_shares) {
        const Range& places = seen.latency;
        if (seen.choice == choice) return atPlaces(range, places);
        // Hops of trees and rings with one protocol differ by as much of the range in NCCL's table (tuning.cc).
        if (seen.choice.protocol != choice.protocol) continue;
        known = atPlaces(range, {places.low - 2 * kSameProtocol, places.high + 2 * kSameProtocol});
    }
    return known.value_or(range);
}

/// Prices a choice as NCCL does, which knows nothing of what ails the links.
Range CollectivePrice::healthyNs(AlgorithmChoice choice, double bytes) const {
    const Range hops = knownLatencyHops(choice), share = bandwidthOf(choice, bytes);
    const double busNs = bytes * facts::busFactor(m_op, m_ranks) / m_state->link.bytesPerNs;
    return {hops.low * m_state->link.alphaNs + busNs / share.high,
            hops.high * m_state->link.alphaNs + busNs / share.low};
}

void CollectivePrice::readLatency() {
    const double stated = m_state->link.alphaNs, peak = m_state->link.bytesPerNs;
    double slowest = peak;
    std::optional<double> highest;
    for (const auto& [bytes, sample] : m_sizes)
        slowest = std::min(slowest, bytes * facts::busFactor(m_op, m_ranks) / sample.ns /
                                        bandwidthShare(m_state->link, m_op, sample.choice, bytes).high);
    facts::Estimate& alpha = m_state->alphaNs;
    for (const auto& [bytes, sample] : m_sizes) {
        if (!isModelled(m_op, sample.choice)) continue;
        const double busNs = bytes * facts::busFactor(m_op, m_ranks), ns = sample.ns + kErrors * sample.errorNs;
        const Range hops = latencyHops(sample.choice),
                    share = bandwidthShare(m_state->link, m_op, sample.choice, bytes);
        const double unexplained = std::max(0.0, ns - busNs / (share.high * peak)) / hops.high;
        highest = std::min(highest.value_or(unexplained), unexplained);
        // A small message, whose bytes do not account for its time, tells how long the latency is if not as stated.
        const double least = (sample.ns - busNs / (share.low * slowest)) / hops.high;
        if (least * hops.high > kMostlyLatency * sample.ns)
            alpha.expected = std::clamp(alpha.expected, least, std::max(least, ns / hops.low));
    }
    alpha.low = std::min(stated, alpha.expected);
    alpha.high = std::max({stated, alpha.expected, highest.value_or(0)});
}

}  // namespace rankscope::costs

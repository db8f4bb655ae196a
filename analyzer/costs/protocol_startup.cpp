// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/protocol_startup.h"

#include <algorithm>
#include <cmath>

#include "analyzer/facts/operation.h"

namespace rankscope::costs {
namespace {

using store::Protocol;

/// Of the hardware latencies in NCCL 2.28 (tuning.cc: NVLink, PCIe and network, tree and ring) LL128's place in its
/// range is 0 to 0.87 above LL's in its own, 0.3 on average. Below: what a place read from a trace may be off by.
constexpr double kBelow = 0.25, kAbove = 0.87, kBetween = 0.3;
constexpr double kOtherAlgorithm = 2 * kSameProtocol;

double clamped(double place) {
    return std::clamp(place, 0.0, 1.0);
}

facts::Communicator groupOf(const facts::TraceFacts& facts, GroupShape shape) {
    for (const auto& [id, communicator] : facts.communicators)
        if (shapeOf(communicator) == shape) return communicator;
    return {};
}

}  // namespace

ProtocolStartup::ProtocolStartup(const LinkPeaks& peaks, const facts::TraceFacts& facts, const CostEvidence& evidence) {
    for (const auto& [key, curve] : evidence.curves()) {
        const bool flags = key.choice.protocol == Protocol::ll || key.choice.protocol == Protocol::ll128;
        if (key.from != EvidenceFrom::trace || !flags || !isModelled(key.op, key.choice)) continue;
        const auto link = linkModel(peaks, groupOf(facts, key.shape), key.op);
        if (!link || link->alphaNs <= 0) continue;
        const Range startup = startupShare(key.choice.protocol), bandwidth = bandwidthShare(key.choice);
        const double hopsNs = hopsOf(key.op, key.shape.ranks, key.choice.algorithm).high * link->alphaNs;
        for (const auto& [bytes, unused] : curve.timesBySize) {
            const auto time = curve.at(bytes);
            if (!time) continue;
            const double busNs = bytes * facts::busFactor(key.op, key.shape.ranks) / link->bytesPerNs;
            const auto place = [&](double share) {
                return clamped(((time->expected - busNs / share) / hopsNs - startup.low) /
                               (startup.high - startup.low));
            };
            const double least = place(bandwidth.low), most = place(bandwidth.high);
            Known& best = m_known[{key.shape, key.choice.protocol}];
            if (most - least < best.doubt) best = {(least + most) / 2, most - least};
        }
    }
}

const ProtocolStartup::Known* ProtocolStartup::known(GroupShape shape, Protocol protocol) const {
    const auto at = m_known.find({shape, protocol});
    return at == m_known.end() || at->second.doubt > kOtherAlgorithm ? nullptr : &at->second;
}

facts::Estimate ProtocolStartup::of(GroupShape shape, Protocol protocol) const {
    const auto around = [](const Known& known, double below, double shift, double above) {
        const double slack = known.doubt / 2;
        return facts::Estimate{clamped(known.place - below - slack), clamped(known.place + shift),
                               clamped(known.place + above + slack)};
    };
    if (const Known* same = known(shape, protocol)) return around(*same, kOtherAlgorithm, 0, kOtherAlgorithm);
    const bool ll = protocol == Protocol::ll;
    if (const Known* other = known(shape, ll ? Protocol::ll128 : Protocol::ll))
        return ll ? around(*other, kAbove, -kBetween, kBelow) : around(*other, kBelow, kBetween, kAbove);
    return {0, 0.5, 1};
}

}  // namespace rankscope::costs

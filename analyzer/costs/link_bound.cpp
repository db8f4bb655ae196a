// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/link_bound.h"

#include <algorithm>

#include "analyzer/facts/operation.h"

namespace rankscope::costs {

double linkBoundNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice) {
    const double ofFormat = bandwidthShare({store::Algorithm::ring, choice.protocol}).high;
    const double ofAlgorithm = bandwidthShare({choice.algorithm, store::Protocol::simple}).low;
    const double startNs = hopsOf(op, ranks, choice.algorithm).high * link.alphaNs * startupShare(choice.protocol).high;
    return startNs + bytes * facts::busFactor(op, ranks) / link.bytesPerNs / (ofFormat * ofAlgorithm);
}

LinkModel seenLink(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs) {
    const double startNs = linkBoundNs(link, op, ranks, 0, choice),
                 boundNs = linkBoundNs(link, op, ranks, bytes, choice);
    const bool mostlyBytes = boundNs >= 2 * startNs;  // above n*: less says more about start-up than about the link
    if (!mostlyBytes || measuredNs < kSlowLink * collectiveNs(link, op, ranks, bytes, choice).high) return link;
    return {link.alphaNs, link.bytesPerNs * (boundNs - startNs) / (measuredNs - startNs)};
}

double explainedNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs) {
    const Range allowed = collectiveNs(link, op, ranks, bytes, choice);
    if (measuredNs >= kSlowLink * allowed.high) return linkBoundNs(link, op, ranks, bytes, choice);
    return std::clamp(measuredNs, allowed.low, allowed.high);
}

}  // namespace rankscope::costs

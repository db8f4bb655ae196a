// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/link_startup.h"

namespace rankscope::costs {

double unknownAlphaNs(bool betweenNodes) {
    return betweenNodes ? LinkStartupThresholds::kUnknownAlphaNs : LinkStartupThresholds::kUnknownInsideAlphaNs;
}

std::optional<LinkModel> linkWithStartup(const LinkPeaks& peaks, const facts::Communicator& communicator,
                                         store::Op op) {
    std::optional<LinkModel> link = linkModel(peaks, communicator, op);
    if (link && link->alphaNs <= 0) link->alphaNs = unknownAlphaNs(communicator.nodes > 1);
    return link;
}

std::optional<LinkModel> linkToCompare(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op) {
    return peaks.atLeast(communicator, op) ? linkWithStartup(peaks, communicator, op)
                                           : linkModel(peaks, communicator, op);
}

}  // namespace rankscope::costs

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/timeline/link_peaks.h"

#include <algorithm>
#include <cstdlib>

namespace rankscope::analyzer {
namespace {

/// Value of `key=` in a class's list, 0 when absent or no number.
double valueOf(const std::string& list, const std::string& key) {
    for (size_t at = list.find(key + "="); at != std::string::npos; at = list.find(key + "=", at + 1)) {
        if (at > 0 && list[at - 1] != ',' && list[at - 1] != ' ') continue;
        return std::strtod(list.c_str() + at + key.size() + 1, nullptr);
    }
    return 0;
}

}  // namespace

std::optional<double> LinkPeaks::busCeiling(const Communicator& communicator) const {
    if (communicator.nodes <= 1) return intra ? std::optional(intra->bytesPerNs) : std::nullopt;
    if (!inter) return std::nullopt;
    const double nics = communicator.smallestNode * inter->bytesPerNs;
    // What a port is known to carry at least is no limit to a card whose rate is known.
    const bool limitsToo = intra && (intra->kind != PeakKind::atLeast || inter->kind == PeakKind::atLeast);
    return limitsToo ? std::min(intra->bytesPerNs, nics) : nics;
}

bool LinkPeaks::atLeast(const Communicator& communicator) const {
    const std::optional<LinkClass>& link = communicator.nodes > 1 ? inter : intra;
    return link && link->kind == PeakKind::atLeast;
}

double LinkPeaks::alphaPerHop(const Communicator& communicator) const {
    double alpha = intra ? intra->alphaNs : 0;
    if (communicator.nodes > 1 && inter) alpha = std::max(alpha, inter->alphaNs);
    return alpha;
}

LinkPeaks parseLinkPeaks(const std::string& text) {
    LinkPeaks peaks;
    for (size_t start = 0; start < text.size();) {
        const size_t end = std::min(text.find(';', start), text.size());
        const std::string part = text.substr(start, end - start);
        start = end + 1;
        const size_t colon = part.find(':');
        if (colon == std::string::npos) continue;
        const std::string list = part.substr(colon + 1);
        const LinkClass link{valueOf(list, "gbps"), valueOf(list, "alpha_us") * 1000, PeakKind::told, "RANKSCOPE_LINKS"};
        if (!(link.bytesPerNs > 0)) continue;
        if (part.find("intra") < colon) peaks.intra = link;
        if (part.find("inter") < colon) peaks.inter = link;
    }
    if (peaks.intra || peaks.inter) peaks.source = "configured (RANKSCOPE_LINKS)";
    return peaks;
}

LinkPeaks readLinkPeaks(const TraceFacts& facts) { return parseLinkPeaks(facts.text("links")); }

}  // namespace rankscope::analyzer

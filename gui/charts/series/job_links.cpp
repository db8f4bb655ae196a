// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/job_links.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace rankscope::gui {
namespace {

std::optional<double> gbpsIn(std::string_view list) {
    const size_t at = list.find("gbps=");
    if (at == std::string_view::npos) return std::nullopt;
    const double value = std::strtod(std::string(list.substr(at + 5, 40)).c_str(), nullptr);
    return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

JobLinks JobLinks::parse(std::string_view text) {
    JobLinks links;
    while (!text.empty()) {
        const size_t end = std::min(text.find(';'), text.size());
        const std::string_view part = text.substr(0, end);
        if (part.starts_with("intra:")) links.intra = gbpsIn(part);
        if (part.starts_with("inter:")) links.inter = gbpsIn(part);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return links;
}

std::optional<double> JobLinks::ceiling(store::Op op, int size, int nodes, int smallestNode) const {
    if (nodes <= 1) return intra;
    if (!inter) return std::nullopt;
    const double cards = std::max(1, smallestNode);
    double network = *inter * (store::isP2p(op) ? 1 : cards);
    if (op == store::Op::allToAll) network = *inter * (size - 1) / std::max(1.0, size - cards);
    return intra ? std::min(*intra, network) : network;
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/job_links.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "collector/store/link_spec.h"

namespace rankscope::gui {
namespace {

// The file may be anybody's: what is no speed is unknown.
std::optional<double> speedIn(const nlohmann::json& peaks, const char* name) {
    const auto link = peaks.find(name);
    if (link == peaks.end() || !link->is_object()) return std::nullopt;
    const auto gbps = link->find("gbps");
    if (gbps == link->end() || !gbps->is_number()) return std::nullopt;
    const double value = gbps->get<double>();
    return std::isfinite(value) && value > 0 && value <= store::LinkSpec::kMostGbps ? std::optional(value)
                                                                                    : std::nullopt;
}

bool isAtLeast(const nlohmann::json& peaks, const char* name) {
    const auto link = peaks.find(name);
    return link != peaks.end() && link->is_object() && link->value("kind", nlohmann::json()) == "at_least";
}

}  // namespace

JobLinks JobLinks::parse(std::string_view text) {
    const store::LinkSpec spec = store::parseLinkSpec(text);
    JobLinks links;
    if (spec.intra) links.intra = spec.intra->gbps;
    if (spec.inter) links.inter = spec.inter->gbps;
    if (spec.intra || spec.inter) links.source = "as told when the run was made";
    return links;
}

JobLinks JobLinks::read(store::TraceReader& reader) {
    const auto peaks = nlohmann::json::parse(reader.meta("link_peaks", ""), nullptr, false);
    if (!peaks.is_object()) return parse(reader.meta("links", ""));
    JobLinks links;
    links.intra = speedIn(peaks, "intra");
    links.inter = speedIn(peaks, "inter");
    links.intraLimitsNetwork = !isAtLeast(peaks, "intra") || isAtLeast(peaks, "inter");
    if (const auto text = peaks.find("text"); text != peaks.end() && text->is_string())
        links.source = text->get<std::string>();
    return links;
}

std::optional<double> JobLinks::ceiling(store::Op op, int size, int nodes, int smallestNode) const {
    if (nodes <= 1) return intra;
    if (!inter) return std::nullopt;
    const double cards = std::max(1, smallestNode);
    double network = *inter * (store::isP2p(op) ? 1 : cards);
    if (op == store::Op::allToAll) network = *inter * (size - 1) / std::max(1.0, size - cards);
    return intra && intraLimitsNetwork ? std::min(*intra, network) : network;
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/html/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "analyzer/report/html/charts.h"
#include "analyzer/text/units.h"

namespace rankscope::report::html {
namespace {

constexpr std::array<std::pair<char, const char*>, 5> kColours{{{overview::kCompute, "compute"},
                                                                {overview::kMemory, "memory"},
                                                                {overview::kTransfer, "transfer"},
                                                                {overview::kWait, "wait"},
                                                                {overview::kOverlapped, "overlapped"}}};

/// All columns of a letter as one line of dashes; moves are relative, which keeps it short.
std::string dashes(std::string_view lane, char letter, int y) {
    std::string path;
    size_t pen = 0;
    for (size_t at = lane.find(letter); at != std::string_view::npos;) {
        const size_t end = std::min(lane.find_first_not_of(letter, at), lane.size());
        path += path.empty() ? fmt::format("M{} {}h{}", at, y, end - at) : fmt::format("m{} 0h{}", at - pen, end - at);
        pen = end;
        at = lane.find(letter, end);
    }
    return path;
}

}  // namespace

std::vector<size_t> chosenLanes(const StepOverview& overview, const std::vector<int>& named) {
    std::set<size_t> chosen;
    const size_t all = overview.lanes.size();
    for (size_t i = 0; i < all && chosen.size() < kMostLanes / 2; ++i)
        if (all > kMostLanes && std::ranges::count(named, overview.lanes[i].rank) != 0) chosen.insert(i);
    const size_t wanted = std::min(kMostLanes, all);
    for (size_t i = 0; i < wanted && chosen.size() < wanted; ++i) chosen.insert(i * all / wanted);
    for (size_t i = 0; i < all && chosen.size() < wanted; ++i) chosen.insert(i);
    return {chosen.begin(), chosen.end()};
}

std::string lanesLegend() {
    return legend({{"compute", "compute"},
                   {"transfer", "exposed transfer"},
                   {"wait", "exposed waiting"},
                   {"overlapped", "communication hidden under compute"},
                   {"memory", "copies"},
                   {"nothing", "idle, or no communication"}});
}

std::string drawLanes(const StepOverview& overview, const std::vector<int>& named, int64_t spanNs) {
    const std::vector<size_t> chosen = chosenLanes(overview, named);
    const auto lengthNs = static_cast<double>(overview.endNs - overview.startNs);
    const double beside = lengthNs > 0 ? std::max(0.0, static_cast<double>(spanNs) / lengthNs - 1) : 0;
    std::string out =
        fmt::format("<div><div class=\"lanes\" style=\"--row:{}px; --beside:{:.4f}fr\" data-length-ns=\"{}\">\n",
                    chosen.size() <= 16 ? 26 : 14, beside, overview.endNs - overview.startNs);
    for (const size_t i : chosen) {
        const OverviewLane& lane = overview.lanes[i];
        const bool isNamed = std::ranges::count(named, lane.rank) != 0;
        out += fmt::format(
            "<span class=\"who{}\">rank {}</span><svg viewBox=\"0 0 {} 20\" preserveAspectRatio=\"none\" role=\"img\" "
            "aria-label=\"rank {}\">",
            isNamed ? " named" : "", lane.rank, StepOverview::kColumns, lane.rank);
        for (const auto& [letter, colour] : kColours) {
            if (const std::string device = dashes(lane.device, letter, 6); !device.empty())
                out += fmt::format("<path class=\"{}\" stroke-width=\"11\" d=\"{}\"/>", colour, device);
            if (const std::string communication = dashes(lane.communication, letter, 16); !communication.empty())
                out += fmt::format("<path class=\"{}\" stroke-width=\"7\" d=\"{}\"/>", colour, communication);
        }
        out += "</svg>\n";
    }
    out += "<div class=\"axis\">";
    for (int tick = 0; tick <= 5; ++tick)
        out += fmt::format("<span>{}</span>", text::durationText(lengthNs * tick / 5));
    out += "</div><div class=\"ruler\"></div></div>\n<p class=\"readout\"></p></div>\n";
    if (chosen.size() < overview.lanes.size())
        out += fmt::format(
            "<p class=\"hint\">{} of {} ranks are drawn: those that findings name, and others spread evenly.</p>\n",
            chosen.size(), overview.lanes.size());
    return out;
}

}  // namespace rankscope::report::html

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/report/html/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "analyzer/text/plain_text.h"
#include "analyzer/text/units.h"

namespace rankscope::report::html {
namespace {

// Share of the values on an axis: what lies closer is one place, and steps of a double would be seen as changes.
constexpr double kLeastSpan = 1e-6;
constexpr int kMostTicks = 20;
// Half the width of a letter: names that would pass the right edge end there.
constexpr double kHalfLetter = 3.5;

constexpr double kWidth = 560, kHeight = 240, kLeft = 84, kRight = 14, kTop = 12, kBottom = 44;

struct Scale {
    double low = 0, high = 1;
    bool isLogarithmic = false;
    double from = 0, to = 1;  // on the picture
    double at(double value) const {
        const auto place = [&](double v) { return isLogarithmic ? std::log2(std::max(v, 1e-300)) : v; };
        const double span = place(high) - place(low);
        return span > 0 ? from + (to - from) * (place(value) - place(low)) / span : (from + to) / 2;
    }
};

/// 1, 2 or 5 times a power of ten, so that about five fit.
double tickWidth(double span) {
    const double raw = span / 5, power = std::pow(10, std::floor(std::log10(raw)));
    const double lead = raw / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

std::vector<double> ticksOf(const Scale& scale) {
    std::vector<double> ticks;
    if (scale.isLogarithmic) {
        const double first = std::ceil(std::log2(scale.low)), last = std::floor(std::log2(scale.high));
        const double step = std::max(1.0, std::ceil((last - first) / 6));
        for (int i = 0; i < kMostTicks && first + i * step <= last; ++i) ticks.push_back(std::exp2(first + i * step));
    } else if (scale.high > scale.low) {
        const double step = tickWidth(scale.high - scale.low);
        const double first = std::ceil(scale.low / step);
        for (int i = 0; i < kMostTicks && (first + i) * step <= scale.high + step * 1e-9; ++i)
            ticks.push_back((first + i) * step);
    }
    return ticks;
}

struct ValueRange {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
    void take(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    /// So wide that a double still has places between its ends.
    void widen() {
        const double least = kLeastSpan * std::max(std::abs(low), std::abs(high)), missing = least - (high - low);
        if (!(high > low) || missing <= 0) return;
        low -= missing / 2;
        high += missing / 2;
    }
};

void drawAxes(const Chart& chart, const Scale& x, const Scale& y, std::string& out) {
    for (const double tick : ticksOf(y)) {
        out += fmt::format("<line class=\"gridline\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft,
                           kWidth - kRight, y.at(tick), y.at(tick));
        out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 6, y.at(tick) + 4,
                           text::markupText(chart.y.text(tick)));
    }
    for (const auto& [place, name] : chart.xNames)
        out += x.at(place) + kHalfLetter * static_cast<double>(name.size()) > kWidth
                   ? fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kWidth,
                                 kHeight - kBottom + 16, text::markupText(name))
                   : fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x.at(place),
                                 kHeight - kBottom + 16, text::markupText(name));
    for (const double tick : chart.xNames.empty() ? ticksOf(x) : std::vector<double>{})
        out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x.at(tick),
                           kHeight - kBottom + 16, text::markupText(chart.x.text(tick)));
    out += fmt::format("<path class=\"frame\" d=\"M{} {}V{}H{}\"/>", kLeft, kTop, kHeight - kBottom, kWidth - kRight);
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", (kLeft + kWidth - kRight) / 2,
                       kHeight - 8, text::markupText(chart.x.title));
    out += fmt::format(
        "<text class=\"beside\" transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (kTop + kHeight - kBottom) / 2, text::markupText(chart.y.title));
}

constexpr std::array<std::pair<char, const char*>, 5> kColours{{{overview::kCompute, "compute"},
                                                                {overview::kMemory, "memory"},
                                                                {overview::kTransfer, "transfer"},
                                                                {overview::kWait, "wait"},
                                                                {overview::kOverlapped, "overlapped"}}};

/// Draws all columns of a letter as one line of dashes; moves are relative, which keeps it short.
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

std::string stackedBar(const std::vector<Part>& parts, double whole) {
    std::string out = "<svg viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">";
    double at = 0;
    for (const Part& part : parts) {
        const double width = whole > 0 ? 1000 * part.value / whole : 0;
        if (width >= 0.05)
            out +=
                fmt::format("<rect class=\"{}\" x=\"{:.1f}\" width=\"{:.1f}\" height=\"10\"><title>{}</title></rect>",
                            part.colour, at, width, text::markupText(part.label));
        at += width;
    }
    return out + "</svg>";
}

std::string legend(const std::vector<Part>& parts) {
    std::string out = "<ul class=\"legend\">";
    for (const Part& part : parts)
        out += fmt::format("<li><i class=\"{}\"></i>{}</li>", part.colour, text::markupText(part.label));
    return out + "</ul>\n";
}

std::string stepPartsLegend() {
    return legend({{"compute", "compute"},
                   {"overlapped", "compute with communication hidden under it"},
                   {"transfer", "exposed transfer"},
                   {"wait", "exposed waiting"},
                   {"memory", "copies"},
                   {"idle", "idle"}});
}

std::string millisecondsText(double ns) {
    return fmt::format("{:g} ms", ns / 1e6);
}

std::string barChart(std::string_view title, const std::vector<Bar>& bars, double whole) {
    constexpr double kRow = 30, kLeastLeft = 150, kBarWidth = 160,
                     kValueWidth = 110;  // narrow: its words are read on a telephone, too
    constexpr double kLetter = 6.2;      // of a label, mean width of the page's fonts at its size, and some more
    double left = kLeastLeft;
    for (const Bar& bar : bars) left = std::max(left, kLetter * static_cast<double>(bar.label.size()) + 14);
    if (whole <= 0)
        for (const Bar& bar : bars) whole = std::max(whole, bar.value);
    std::string out = fmt::format("<svg class=\"chart bars\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
                                  left + kBarWidth + kValueWidth, kRow * static_cast<double>(bars.size()) + 4,
                                  text::markupText(title));
    for (size_t i = 0; i < bars.size(); ++i) {
        const double top = kRow * static_cast<double>(i);
        const double width = whole > 0 ? kBarWidth * std::clamp(bars[i].value / whole, 0.0, 1.0) : 0;
        out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", left - 10, top + 19,
                           text::markupText(bars[i].label));
        out += fmt::format("<rect class=\"back\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"18\" rx=\"2\"/>", left,
                           top + 6, kBarWidth);
        out += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"18\" rx=\"2\"/>",
                           bars[i].colour, left, top + 6, width);
        out += fmt::format("<text class=\"value\" x=\"{}\" y=\"{}\">{}</text>", left + kBarWidth + 10, top + 19,
                           text::markupText(bars[i].text));
    }
    return out + "</svg>\n";
}

std::string drawChart(const Chart& chart) {
    ValueRange xs, ys;
    const auto take = [&](const Point& point) {
        xs.take(point.x);
        ys.take(point.y);
    };
    for (const std::vector<Point>& curve : chart.curves) std::ranges::for_each(curve, take);
    std::ranges::for_each(chart.dots, take);
    if (xs.low > xs.high) return "<p class=\"hint\">No values.</p>\n";
    for (const auto& [level, name] : chart.levels) ys.take(level);
    if (chart.fromZero) ys.take(0);
    xs.widen();
    ys.widen();
    const double room = ys.high > ys.low ? 0.08 * (ys.high - ys.low) : std::max(1.0, std::abs(ys.high) * 0.1);
    Scale x{xs.low, xs.high, chart.x.isLogarithmic, kLeft + 10, kWidth - kRight - 10};
    if (chart.x.isLogarithmic) x = {std::max(1.0, xs.low / 2), xs.high * 2, true, kLeft + 10, kWidth - kRight - 10};
    const Scale y{chart.fromZero ? 0 : ys.low - room, ys.high + room, false, kHeight - kBottom, kTop};

    std::string out = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", kWidth,
                                  kHeight, text::markupText(chart.title));
    drawAxes(chart, x, y, out);
    for (const auto& [level, name] : chart.levels) {
        out += fmt::format("<line class=\"trend\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft,
                           kWidth - kRight, y.at(level), y.at(level));
    }
    for (const std::vector<Point>& curve : chart.curves) {
        out += "<path class=\"curve\" d=\"";
        for (size_t i = 0; i < curve.size(); ++i)
            out += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", x.at(curve[i].x), y.at(curve[i].y));
        out += "\"/>";
    }
    for (const Point& dot : chart.dots)
        out += fmt::format("<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\"><title>{}</title></circle>",
                           dot.colour, x.at(dot.x), y.at(dot.y), dot.radius, text::markupText(dot.label));
    for (const auto& [level, name] : chart.levels) {  // on top of the points
        const bool isLow = y.at(level) > (kTop + kHeight - kBottom) / 2;
        out += fmt::format("<text class=\"value level\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
                           kWidth - kRight - 4, y.at(level) + (isLow ? -8 : 16), text::markupText(name));
    }
    return out + "</svg>\n";
}

std::vector<size_t> chosenLanes(const StepOverview& overview, const std::vector<int>& named) {
    std::set<size_t> chosen;
    const size_t all = overview.lanes.size();
    for (size_t i = 0; i < all && chosen.size() < kMostLanes / 2; ++i)
        if (all > kMostLanes && std::ranges::count(named, overview.lanes[i].rank) != 0) chosen.insert(i);
    std::vector<size_t> others;
    for (size_t i = 0; i < all; ++i)
        if (!chosen.contains(i)) others.push_back(i);
    const size_t more = std::min(kMostLanes, all) - chosen.size();
    for (size_t i = 0; i < more; ++i)  // the first and the last among them
        chosen.insert(others[more > 1 ? i * (others.size() - 1) / (more - 1) : 0]);
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

constexpr double kLastTick = 0.96;  // a label in the middle of a tick behind it would leave the picture

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
    for (const double tick : ticksOf({.low = 0, .high = lengthNs})) {
        const double place = tick / lengthNs;
        const char* side = tick == 0 ? " class=\"first\"" : place > kLastTick ? " class=\"last\"" : "";
        out += fmt::format("<span{} style=\"left: {:.2f}%\">{}</span>", side, 100 * place,
                           tick == 0 ? "0" : text::durationText(tick));
    }
    out += "</div><div class=\"ruler\"></div></div>\n<p class=\"readout\"></p></div>\n";
    if (chosen.size() < overview.lanes.size())
        out += fmt::format(
            "<p class=\"hint\">{} of {} ranks are drawn: those that findings name, and others spread evenly.</p>\n",
            chosen.size(), overview.lanes.size());
    return out;
}

}  // namespace rankscope::report::html

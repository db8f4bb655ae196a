// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace rankscope::gui {
namespace {

struct Unit {
    int64_t ns;
    const char* name;
};
constexpr std::array<Unit, 4> kUnits{{{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}, {1, "ns"}}};
// Labels longer than this many steps from their base are hard to read and to compare.
constexpr int64_t kMaxStepsInLabel = 10'000;

// The unit of the step, or a larger one where labels up to `largestNs` would have more than four digits before the
// point.
const Unit& unitFor(int64_t stepNs, int64_t largestNs) {
    size_t unit = 0;
    while (unit + 1 < kUnits.size() && stepNs < kUnits[unit].ns && largestNs / kUnits[unit + 1].ns < 10'000) ++unit;
    return kUnits[unit];
}

int64_t roundStep(double atLeastNs) {
    if (atLeastNs <= 1) return 1;
    const double decade = std::pow(10.0, std::floor(std::log10(atLeastNs)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
        if (decade * factor >= atLeastNs * 0.999'999) return static_cast<int64_t>(std::llround(decade * factor));
    return static_cast<int64_t>(std::llround(decade * 10));
}

int64_t floorTo(int64_t value, int64_t step) {
    return value - ((value % step) + step) % step;
}

// Whole multiples of a step print without a tail of zeros: 1500 us as 1.5 ms.
std::string exact(int64_t ns, const Unit& unit) {
    return fmt::format("{:.10g} {}", static_cast<double>(ns) / static_cast<double>(unit.ns), unit.name);
}

// Times of a damaged file may be anything: cut to where differences of them do not overflow, or a ruler would never
// end.
TimeRange within(TimeRange range) {
    constexpr int64_t kFarthest = INT64_MAX / 4;
    return {std::clamp(range.beginNs, -kFarthest, kFarthest), std::clamp(range.endNs, -kFarthest, kFarthest)};
}

}  // namespace

TimeRange hull(TimeRange a, TimeRange b) {
    return {std::min(a.beginNs, b.beginNs), std::max(a.endNs, b.endNs)};
}

void TimeAxis::setWhole(TimeRange whole) {
    whole = within(whole);
    whole.endNs = std::max(whole.endNs, whole.beginNs + kMinSpanNs);
    const bool showedAll = m_visible == m_fitted;
    m_whole = m_room = m_fitted = whole;
    show(showedAll ? whole : m_visible);
}

void TimeAxis::setRoom(TimeRange room, TimeRange fitted) {
    const bool showedAll = m_visible == m_fitted;
    m_room = hull(m_whole, within(room));
    m_fitted = hull(m_whole, within(fitted));
    m_room = hull(m_room, m_fitted);
    show(showedAll ? m_fitted : m_visible);
}

void TimeAxis::setWidth(double pixels) {
    m_width = std::max(1.0, pixels);
}

void TimeAxis::show(TimeRange visible) {
    const int64_t span = std::clamp(visible.span(), kMinSpanNs, m_room.span());
    // A range that is too short grows around its middle.
    const int64_t begin = visible.beginNs - (span > visible.span() ? (span - visible.span()) / 2 : 0);
    m_visible.beginNs = std::clamp(begin, m_room.beginNs, m_room.endNs - span);
    m_visible.endNs = m_visible.beginNs + span;
}

void TimeAxis::place(TimeRange visible) {
    m_visible = within(visible);
    m_visible.endNs = std::max(m_visible.endNs, m_visible.beginNs + kMinSpanNs);
}

void TimeAxis::zoomAt(double x, double factor) {
    const double share = std::clamp(x / m_width, 0.0, 1.0);
    const double span = static_cast<double>(m_visible.span());
    const double wanted =
        std::clamp(span * factor, static_cast<double>(kMinSpanNs), static_cast<double>(m_room.span()));
    const int64_t begin = m_visible.beginNs + static_cast<int64_t>(std::llround((span - wanted) * share));
    show({begin, begin + static_cast<int64_t>(std::llround(wanted))});
}

void TimeAxis::panBy(double pixels) {
    const auto delta = static_cast<int64_t>(std::llround(pixels / pixelsPerNs()));
    show({m_visible.beginNs + delta, m_visible.endNs + delta});
}

void TimeAxis::reveal(TimeRange range) {
    const int64_t margin = std::max<int64_t>(range.span() / 4, 1);
    const TimeRange wanted{range.beginNs - margin, range.endNs + margin};
    const bool inside = wanted.beginNs >= m_visible.beginNs && wanted.endNs <= m_visible.endNs;
    // What is narrower than a few pixels cannot be seen, although it is inside.
    const bool visibleSize = static_cast<double>(range.span()) * pixelsPerNs() >= 8;
    if (inside && visibleSize) return;
    show(wanted);
}

int64_t TimeAxis::timeAt(double x) const noexcept {
    return m_visible.beginNs + static_cast<int64_t>(std::llround(x / pixelsPerNs()));
}

Ruler TimeAxis::ruler(double minGapPixels) const {
    Ruler ruler;
    const int64_t step = roundStep(minGapPixels / pixelsPerNs());
    if (m_visible.endNs / step > kMaxStepsInLabel) {
        ruler.baseNs = floorTo(m_visible.beginNs, std::max<int64_t>(step * 1000, 1));
        ruler.baseLabel = fmt::format("at {:.9g} s", static_cast<double>(ruler.baseNs) / 1e9);
    }
    const Unit& unit = unitFor(step, m_visible.endNs - ruler.baseNs);
    for (int64_t time = floorTo(m_visible.beginNs + step - 1, step); time < m_visible.endNs; time += step)
        ruler.ticks.push_back({time, xOf(time), (ruler.baseNs != 0 ? "+" : "") + exact(time - ruler.baseNs, unit)});
    return ruler;
}

std::string durationText(int64_t ns) {
    const double size = std::abs(static_cast<double>(ns));
    for (const Unit& unit : kUnits) {
        if (size < static_cast<double>(unit.ns) && unit.ns > 1) continue;
        const double value = static_cast<double>(ns) / static_cast<double>(unit.ns);
        if (unit.ns == 1) return fmt::format("{} ns", ns);
        const double digits = std::abs(value);
        return fmt::format("{:.{}f} {}", value, digits < 10 ? 2 : digits < 100 ? 1 : 0, unit.name);
    }
    return "0 ns";
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/timeline/curve.h"

#include <algorithm>

namespace rankscope::gui {

void Curve::add(int64_t ns, double value) {
    if (m_levels.empty()) m_levels.emplace_back();
    if (!m_times.empty()) ns = std::max(ns, m_times.back());
    m_peak = m_times.empty() ? value : std::max(m_peak, value);
    m_times.push_back(ns);
    m_levels.front().push_back(value);
}

void Curve::finish() {
    m_times.shrink_to_fit();
    while (!m_levels.empty() && m_levels.back().size() > kFan) {
        const std::vector<double>& below = m_levels.back();
        std::vector<double> highest;
        highest.reserve(below.size() / kFan + 1);
        for (size_t first = 0; first < below.size(); first += kFan)
            highest.push_back(
                *std::max_element(below.begin() + static_cast<ptrdiff_t>(first),
                                  below.begin() + static_cast<ptrdiff_t>(std::min(first + kFan, below.size()))));
        m_levels.push_back(std::move(highest));
    }
}

double Curve::top() const noexcept {
    return m_limit ? std::max(*m_limit, m_peak) : m_peak;
}

size_t Curve::firstAfter(int64_t ns) const noexcept {
    return static_cast<size_t>(std::upper_bound(m_times.begin(), m_times.end(), ns) - m_times.begin());
}

std::optional<double> Curve::at(int64_t ns) const noexcept {
    const size_t after = firstAfter(ns);
    return after == 0 ? std::nullopt : std::optional(m_levels.front()[after - 1]);
}

// Of values [first, last) of a level: those at its ends one by one, what lies between by the level above.
double Curve::highestOf(size_t level, size_t first, size_t last) const noexcept {
    const std::vector<double>& values = m_levels[level];
    double highest = values[first];
    const size_t from = (first + kFan - 1) / kFan, to = last / kFan;
    if (level + 1 < m_levels.size() && from < to) {
        highest = std::max(highest, highestOf(level + 1, from, to));
        for (size_t i = first; i < from * kFan; ++i) highest = std::max(highest, values[i]);
        for (size_t i = to * kFan; i < last; ++i) highest = std::max(highest, values[i]);
        return highest;
    }
    for (size_t i = first; i < last; ++i) highest = std::max(highest, values[i]);
    return highest;
}

std::optional<double> Curve::highest(TimeRange range) const noexcept {
    if (empty()) return std::nullopt;
    const size_t first = firstAfter(range.beginNs), last = firstAfter(std::max(range.beginNs, range.endNs - 1));
    if (last == 0) return std::nullopt;
    return highestOf(0, first == 0 ? 0 : first - 1, last);
}

size_t Curve::bytes() const noexcept {
    size_t bytes = m_times.size() * sizeof(int64_t);
    for (const auto& level : m_levels) bytes += level.size() * sizeof(double);
    return bytes;
}

void drawCurve(const Curve& curve, const TimeAxis& axis, std::vector<float>& columns) {
    const auto width = static_cast<int32_t>(axis.width());
    columns.assign(static_cast<size_t>(std::max(0, width)), -1.0f);
    if (curve.empty()) return;
    const double top = curve.top() > 0 ? curve.top() : 1;
    for (int32_t x = 0; x < width; ++x)
        if (const auto value = curve.highest({axis.timeAt(x), axis.timeAt(x + 1)}))
            columns[static_cast<size_t>(x)] = static_cast<float>(std::clamp(*value / top, 0.0, 1.0));
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/cost_line.h"

#include <algorithm>
#include <cmath>

namespace rankscope::gui {
namespace {

constexpr double kAlike = 1.1, kSmallestRange = 4;

double medianOf(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// A size seen often must not outweigh the others, and one transfer that met another on its link must not bend the line.
std::vector<SizedTime> mediansBySize(const std::vector<SizedTime>& sorted) {
    std::vector<SizedTime> medians;
    for (size_t first = 0; first < sorted.size();) {
        size_t last = first;
        std::vector<double> sizes, times;
        for (; last < sorted.size() && sorted[last].bytes <= kAlike * sorted[first].bytes; ++last) {
            sizes.push_back(sorted[last].bytes);
            times.push_back(sorted[last].timeNs);
        }
        medians.push_back({medianOf(std::move(sizes)), medianOf(std::move(times))});
        first = last;
    }
    return medians;
}

// Weights 1 / time^2: the picture is logarithmic, and a start-up of microseconds must count beside transfers of
// milliseconds.
CostLine leastSquares(const std::vector<SizedTime>& points) {
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
    for (const SizedTime& p : points) {
        const double weight = 1 / (p.timeNs * p.timeNs);
        w += weight;
        wx += weight * p.bytes;
        wxx += weight * p.bytes * p.bytes;
        wy += weight * p.timeNs;
        wxy += weight * p.bytes * p.timeNs;
    }
    const double determinant = w * wxx - wx * wx;
    const CostLine line{(wxx * wy - wx * wxy) / determinant, (w * wxy - wx * wy) / determinant};
    if (line.alphaNs < 0) return {0, wxy / wxx};
    if (line.betaNsPerByte < 0) return {wy / w, 0};
    return line;
}

}  // namespace

std::optional<CostLine> fitCostLine(std::vector<SizedTime> samples) {
    std::erase_if(samples, [](const SizedTime& s) {
        return !(s.bytes > 0) || !(s.timeNs > 0) || !std::isfinite(s.bytes) || !std::isfinite(s.timeNs);
    });
    std::sort(samples.begin(), samples.end(), [](const SizedTime& a, const SizedTime& b) { return a.bytes < b.bytes; });
    if (samples.empty() || samples.back().bytes < kSmallestRange * samples.front().bytes) return std::nullopt;
    const CostLine line = leastSquares(mediansBySize(samples));
    if (!std::isfinite(line.alphaNs) || !std::isfinite(line.betaNsPerByte)) return std::nullopt;
    return line;
}

std::optional<CostLine> startUpBeyond(double betaNsPerByte, const std::vector<SizedTime>& samples) {
    std::vector<double> beyond;
    for (const SizedTime& sample : samples) beyond.push_back(sample.timeNs - betaNsPerByte * sample.bytes);
    if (beyond.empty() || !std::isfinite(betaNsPerByte)) return std::nullopt;
    return CostLine{std::max(0.0, medianOf(std::move(beyond))), betaNsPerByte};
}

}  // namespace rankscope::gui

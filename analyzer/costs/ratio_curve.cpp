// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/ratio_curve.h"

#include <algorithm>
#include <cmath>

namespace rankscope::costs {

RatioCurve::RatioCurve(const SizeCurve& now, const SizeCurve& then) {
    for (const SizeCurve* curve : {&now, &then})
        for (const Kink& kink : curve->kinks()) m_kinksX.push_back(std::log(kink.bytes));
    for (const SizedTime& one : now.points()) {
        const auto other = std::ranges::find(then.points(), one.bytes, &SizedTime::bytes);
        if (other == then.points().end() || now.isKink(one.bytes) || then.isKink(one.bytes)) continue;
        m_points.push_back({std::log(one.bytes), std::log(other->ns / one.ns),
                            std::hypot(std::log1p(one.error), std::log1p(other->error))});
    }
    for (size_t i = 1; i + 1 < m_points.size(); ++i) {
        const Point &low = m_points[i - 1], &high = m_points[i + 1];
        Point& point = m_points[i];
        const double without = std::lerp(low.y, high.y, (point.x - low.x) / (high.x - low.x));
        point.perGap = std::abs(without - point.y) / (high.x - low.x);
    }
}

/// Returns the error in the middle of a gap, as a logarithm.
double RatioCurve::interpolationError(double x, double gap) const {
    std::vector<const Point*> nearest;
    for (const Point& point : m_points)
        if (point.perGap >= 0) nearest.push_back(&point);
    const auto end = nearest.begin() + static_cast<std::ptrdiff_t>(SizeCurve::kNeighbours);
    std::ranges::partial_sort(nearest, end, {}, [&](const Point* point) { return std::abs(point->x - x); });
    const Point* worst =
        *std::max_element(nearest.begin(), end, [](const Point* a, const Point* b) { return a->perGap < b->perGap; });
    return SizeCurve::kBeyond * worst->perGap * gap;
}

std::optional<facts::Estimate> RatioCurve::at(double bytes) const {
    if (m_points.size() < kFewest || !(bytes > 0)) return std::nullopt;
    const double x = std::log(bytes);
    const auto estimate = [](double y, double error) {
        return facts::Estimate{std::exp(y - error), std::exp(y), std::exp(y + error)};
    };
    // Alike sizes count as one, whatever lies behind them.
    const auto nearest = std::ranges::min_element(m_points, {}, [&](const Point& one) { return std::abs(one.x - x); });
    if (std::abs(nearest->x - x) <= std::log(SizeCurve::kAlike)) return estimate(nearest->y, nearest->error);
    const auto above = std::ranges::lower_bound(m_points, x, {}, &Point::x);
    if (above == m_points.end() || above == m_points.begin()) return std::nullopt;
    const Point &low = *std::prev(above), &high = *above;
    const auto inGap = [&](double kinkX) { return kinkX > low.x && kinkX < high.x; };
    if (std::ranges::any_of(m_kinksX, inGap)) return std::nullopt;
    const double gap = high.x - low.x, part = (x - low.x) / gap;
    // It is as good as the measurement at the points, and worst in the middle between them.
    const double error =
        std::hypot(std::max(low.error, high.error), 4 * part * (1 - part) * interpolationError(x, gap));
    return estimate(std::lerp(low.y, high.y, part), error);
}

}  // namespace rankscope::costs

// SPDX-License-Identifier: Apache-2.0
// Tells how many times as long messages take under one setting as under another, from sizes that were measured of both.
// What disturbs a size, and how times bend from start-up to rate, both settings mostly share: their ratio is smoother
// than either curve, and between sizes it is known better.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/costs/size_curve.h"

namespace rankscope::costs {

class RatioCurve {
  public:
    /// Takes the sizes that both curves measured, but for what is a kink of either.
    RatioCurve(const SizeCurve& now, const SizeCurve& then);

    /// Returns the time by `then` over that by `now`: between sizes the power law through the two ratios around, with
    /// the error that leaving each of the nearest sizes out shows, as SizeCurve has it. nullopt outside of the common
    /// sizes, beside a kink, but for what is alike a size that is none (SizeCurve::kAlike), and with fewer than kFewest
    /// of them.
    std::optional<facts::Estimate> at(double bytes) const;

    /// The error is told by SizeCurve::kNeighbours sizes, of which each is left out between two others.
    static constexpr size_t kFewest = SizeCurve::kNeighbours + 2;

  private:
    struct Point {
        double x = 0, y = 0;  // logarithms of bytes and ratio
        double error = 0;     // of both measurements
        double perGap = -1;   // what its neighbours miss it by, over the gap between them; < 0: it has but one
    };

    double interpolationError(double x, double gap) const;

    std::vector<Point> m_points;   // by size
    std::vector<double> m_kinksX;  // logarithms of the sizes left out
};

}  // namespace rankscope::costs

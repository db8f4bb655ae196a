// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/student_t.h"

#include <cmath>

namespace rankscope::facts {
namespace {

/// Continued fraction of the incomplete beta function, from the tail on: 200 terms are far more than it needs for x
/// below the switch point.
double betaFraction(double a, double b, double x) {
    double fraction = 1;
    for (int m = 200; m >= 1; --m) {
        const double odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1));
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        fraction = 1 + odd / (1 + even / fraction);
    }
    return 1 / fraction;
}

}  // namespace

double regularizedBeta(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const double front =
        std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * betaFraction(a, b, x) / a : 1 - front * betaFraction(b, a, 1 - x) / b;
}

double studentOutside(double t, double degrees) {
    return regularizedBeta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double studentTwoSided(double confidence, double degrees) {
    const auto outside = [&](double t) { return studentOutside(t, degrees); };
    double low = 0, high = 1;
    while (high < 1e12 && outside(high) > 1 - confidence) high *= 2;
    for (int i = 0; i < 100; ++i) {
        const double middle = (low + high) / 2;
        (outside(middle) > 1 - confidence ? low : high) = middle;
    }
    return (low + high) / 2;
}

}  // namespace rankscope::facts

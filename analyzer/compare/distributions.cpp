// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/distributions.h"

#include <cmath>

#include "analyzer/facts/student_t.h"

namespace rankscope::compare {
namespace {

template <typename Function>
double bisected(double low, double high, double wanted, Function&& increasing) {
    for (int i = 0; i < 80; ++i) {
        const double middle = (low + high) / 2;
        (increasing(middle) < wanted ? low : high) = middle;
    }
    return (low + high) / 2;
}

/// P(a, x). The series has positive terms only, so that nothing cancels; it needs about x + 10 sqrt(x) of them.
double regularizedGamma(double a, double x) {
    if (x <= 0) return 0;
    double term = std::exp(a * std::log(x) - x - std::lgamma(a + 1)), sum = term;
    for (double n = a + 1; term > sum * 1e-17 || n < x; ++n) {
        term *= x / n;
        sum += term;
        if (n > a + x + 10000) break;
    }
    return sum;
}

}  // namespace

double normalQuantile(double p) {
    return bisected(-40, 40, p, [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; });
}

double chiSquaredQuantile(double p, double degrees) {
    double high = degrees + 10;
    while (regularizedGamma(degrees / 2, high / 2) < p && high < 1e9) high *= 2;
    return bisected(0, high, p, [&](double x) { return regularizedGamma(degrees / 2, x / 2); });
}

double varianceRatioOutside(double ratio, double degreesAbove, double degreesBelow) {
    return facts::regularizedBeta(degreesBelow / 2, degreesAbove / 2,
                                  degreesBelow / (degreesBelow + degreesAbove * ratio));
}

}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/timeline/time_axis.h"

namespace rankscope::gui {
namespace {

// Binary prefixes, as the reports give sizes.
std::string binary(double value) {
    constexpr const char* kPrefixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    size_t prefix = 0;
    while (std::fabs(value) >= 1023.5 && prefix + 1 < std::size(kPrefixes)) {
        value /= 1024;
        ++prefix;
    }
    return fmt::format("{:.{}f} {}B", value,
                       value == std::floor(value) || std::fabs(value) >= 100 ? 0
                       : std::fabs(value) >= 10                              ? 1
                                                                             : 2,
                       kPrefixes[prefix]);
}

// Powers of two with a stride that leaves round ones: 1 KiB, 32 KiB, 1 MiB.
std::vector<double> binaryTicks(double low, double high, bool logarithmic, size_t most) {
    std::vector<double> ticks;
    if (!logarithmic) {
        // As on any axis, counted in the unit that the largest has.
        const double unit = std::pow(1024, std::floor(std::log(std::max(high, 1.0)) / std::log(1024)));
        for (const double tick : axisTicks(low / unit, high / unit, false, most)) ticks.push_back(tick * unit);
        return ticks;
    }
    if (!std::isfinite(low) || !std::isfinite(high) || !(low > 0) || !(high > low) || most == 0) return ticks;
    const double first = std::ceil(std::log2(low) - 1e-9), last = std::floor(std::log2(high) + 1e-9);
    double stride = 1;
    for (const double step : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0}) {
        stride = step;
        if ((last - first) / step + 1 <= static_cast<double>(most)) break;
    }
    for (double power = std::ceil(first / stride) * stride; power <= last; power += stride)
        ticks.push_back(std::exp2(power));
    return ticks;
}

// Decimal prefixes, as link speeds are given.
std::string scaled(double value, const char* unit) {
    constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t prefix = 0;
    // 999.5 would be written as 1e+03.
    while (std::fabs(value) >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
        value /= 1000;
        ++prefix;
    }
    return fmt::format("{:.3g} {}{}", value, kPrefixes[prefix], unit);
}

}  // namespace

std::string quantityText(Quantity quantity, double value) {
    if (!std::isfinite(value)) return "unknown";
    switch (quantity) {
        case Quantity::bytes:
            return binary(value);
        case Quantity::bytesPerNs:
            return scaled(value * 1e9, "B/s");
        case Quantity::nanoseconds:
            return durationText(static_cast<int64_t>(std::llround(std::clamp(value, -9e18, 9e18))));
        case Quantity::share:
            return fmt::format("{:.3g} %", 100 * value);
        case Quantity::nsPerByte:
            return value < 0.9995 ? fmt::format("{:.3g} ms/GB", 1000 * value) : fmt::format("{:.3g} s/GB", value);
        case Quantity::count:
            return fmt::format("{:.6g}", value);
    }
    return {};
}

std::vector<double> quantityTicks(Quantity quantity, double low, double high, bool logarithmic, size_t most) {
    return quantity == Quantity::bytes ? binaryTicks(low, high, logarithmic, most)
                                       : axisTicks(low, high, logarithmic, most);
}

std::vector<double> axisTicks(double low, double high, bool logarithmic, size_t most) {
    std::vector<double> ticks;
    if (!std::isfinite(low) || !std::isfinite(high) || !(high > low) || most == 0 || (logarithmic && !(low > 0)))
        return ticks;
    if (logarithmic) {
        const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9)),
                  last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
        if (last - first + 1 < 3) {
            for (int decade = first - 1; decade <= last; ++decade)
                for (const double factor : {1.0, 2.0, 5.0})
                    if (const double tick = factor * std::pow(10, decade);
                        tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9))
                        ticks.push_back(tick);
            std::vector<double> fewer;
            for (size_t i = 0, stride = (ticks.size() + most - 1) / most; i < ticks.size(); i += stride)
                fewer.push_back(ticks[i]);
            return fewer;
        }
        const int stride = std::max(1, (last - first + static_cast<int>(most)) / static_cast<int>(most));
        for (int decade = first; decade <= last; decade += stride) ticks.push_back(std::pow(10, decade));
        return ticks;
    }
    const double rough = (high - low) / static_cast<double>(most);
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
        step = factor * power;
        if (step >= rough * (1 - 1e-9)) break;
    }
    const double first = std::ceil(low / step - 1e-9);
    for (double i = first; i * step <= high + step * 1e-9 && ticks.size() <= most; ++i) ticks.push_back(i * step);
    return ticks;
}

}  // namespace rankscope::gui

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace rankscope::text {
namespace {

/// Writes three significant digits without an exponent: 1.23, 12.3, 123.
std::string shortNumber(double value) {
    value += 0.0;  // no sign in front of 0
    const double size = std::abs(value);
    if (size >= 99.95 || value == std::floor(value)) return fmt::format("{:.0f}", value);
    return size >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace

std::string bytesText(double bytes) {
    const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (std::abs(bytes) >= 1024 && unit < 4) {
        bytes /= 1024;
        ++unit;
    }
    return shortNumber(bytes) + " " + units[unit];
}

std::string durationText(double ns) {
    const double size = std::abs(ns);
    if (size >= 1e9) return shortNumber(ns / 1e9) + " s";
    if (size >= 1e6) return shortNumber(ns / 1e6) + " ms";
    if (size >= 1e3) return shortNumber(ns / 1e3) + " us";
    return shortNumber(ns) + " ns";
}

std::string bandwidthText(double bytesPerSecond) {
    const double size = std::abs(bytesPerSecond);
    if (size >= 0.9995e9) return fmt::format("{:.1f} GB/s", bytesPerSecond / 1e9);
    return size >= 0.9995e6 ? shortNumber(bytesPerSecond / 1e6) + " MB/s" : shortNumber(bytesPerSecond / 1e3) + " kB/s";
}

std::string percentText(double share) {
    return fmt::format("{:.1f} %", 100 * share);
}

std::vector<std::string> rankRanges(std::vector<int> ranks) {
    std::ranges::sort(ranks);
    std::vector<std::string> ranges;
    for (size_t i = 0; i < ranks.size();) {
        size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        ranges.push_back(last == i ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]));
        i = last + 1;
    }
    return ranges;
}

std::string rangesText(const std::vector<int>& numbers) {
    return fmt::format("{}", fmt::join(rankRanges(numbers), ", "));
}

namespace {

/// Many ranks, each as far from the next, but not side by side: the members of a large job's groups.
bool isLongStride(const std::vector<int>& sorted) {
    constexpr size_t kMostNamed = 8;  // half a line
    if (sorted.size() <= kMostNamed) return false;
    const int stride = sorted[1] - sorted[0];
    const auto breaks = [stride](int rank, int next) { return next - rank != stride; };
    return stride > 1 && std::ranges::adjacent_find(sorted, breaks) == sorted.end();
}

}  // namespace

std::string ranksText(const std::vector<int>& ranks) {
    std::vector<int> sorted = ranks;
    std::ranges::sort(sorted);
    if (isLongStride(sorted))
        return fmt::format("ranks {}, {}, ..., {} ({} ranks)", sorted[0], sorted[1], sorted.back(), sorted.size());
    return (ranks.size() == 1 ? "rank " : "ranks ") + (ranks.empty() ? "none" : rangesText(ranks));
}

int sizeClassOf(int64_t bytes) {
    return bytes > 0 ? static_cast<int>(std::floor(std::log2(static_cast<double>(bytes)) / 2)) : -1;
}

std::string sizeClassText(int sizeClass) {
    if (sizeClass < 0) return "unknown size";
    return bytesText(std::pow(4.0, sizeClass)) + " to " + bytesText(std::pow(4.0, sizeClass + 1));
}

}  // namespace rankscope::text

// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/period_cuts.h"

#include <algorithm>

namespace rankscope::collector {
namespace {

constexpr size_t kLeastCycles = 3;
/// What comes before and behind the steps takes no more than this share of the kernels at either end.
constexpr size_t kOutsideShare = 4;

/// The shortest length by which [first, last) is equal to itself when moved, by the borders of its prefixes (the table
/// of Knuth, Morris and Pratt): in one pass, whatever the length.
size_t shortestPeriod(const KernelSequence& kernels, size_t first, size_t last) {
    std::vector<size_t> border(last - first);
    for (size_t i = 1; i < border.size(); ++i) {
        size_t length = border[i - 1];
        while (length > 0 && kernels[first + i].nameId != kernels[first + length].nameId) length = border[length - 1];
        border[i] = kernels[first + i].nameId == kernels[first + length].nameId ? length + 1 : 0;
    }
    return border.empty() ? 0 : border.size() - border.back();
}

}  // namespace

Cuts cutsByPeriod(const KernelSequence& kernels) {
    const size_t outside = kernels.size() / kOutsideShare;
    const size_t period = shortestPeriod(kernels, outside, kernels.size() - outside);
    if (period == 0 || period * kLeastCycles > kernels.size()) return {};
    size_t first = outside, last = kernels.size() - outside;
    if (last - first < period + period / 2) return {};  // less than half of it has been seen again
    while (first > 0 && kernels[first - 1].nameId == kernels[first - 1 + period].nameId) --first;
    while (last < kernels.size() && kernels[last].nameId == kernels[last - period].nameId) ++last;
    const size_t repeats = (last - first) / period;
    if (repeats < kLeastCycles) return {};
    // One kernel over and over is no program of steps.
    if (std::all_of(kernels.begin() + static_cast<std::ptrdiff_t>(first),
                    kernels.begin() + static_cast<std::ptrdiff_t>(last),
                    [&](const KernelLaunch& kernel) { return kernel.nameId == kernels[first].nameId; }))
        return {};
    Cuts cuts;
    for (size_t k = 0; k <= repeats; ++k) cuts.push_back(first + k * period);
    return cuts;
}

}  // namespace rankscope::collector

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/own_pace.h"

#include <algorithm>

#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
namespace {

/// Index of an analysed step; steps.size() for another one.
size_t indexOf(const std::vector<int>& steps, int step) {
    const auto place = std::ranges::lower_bound(steps, step);
    return place == steps.end() || *place != step ? steps.size() : static_cast<size_t>(place - steps.begin());
}

/// Of kernels whose launch shape is unknown nobody knows whether they do the same work again.
bool isComparable(const facts::KernelKey& key) {
    return key.gridBlocks > 0;
}

double usual(const std::vector<double>& times) {
    std::vector<double> known;
    std::ranges::copy_if(times, std::back_inserter(known), [](double ns) { return ns > 0; });
    return facts::median(std::move(known));
}

}  // namespace

KernelTimes kernelTimes(const job::Analysis& analysis, const facts::RankSummary& rank) {
    KernelTimes times;
    for (const facts::KernelStatistics& kernel : rank.kernels) {
        const size_t index = indexOf(analysis.steps, kernel.step);
        if (index == analysis.steps.size() || !isComparable(kernel.key)) continue;
        std::vector<double>& ofKernel = times[kernel.key];
        ofKernel.resize(analysis.steps.size());
        ofKernel[index] = kernel.medianNs;
    }
    return times;
}

std::vector<double> ownPace(const job::Analysis& analysis, const facts::RankSummary& rank) {
    std::map<facts::KernelKey, double> middle;
    for (const auto& [key, times] : kernelTimes(analysis, rank)) middle[key] = usual(times);
    std::vector<double> own(analysis.steps.size()), expected(analysis.steps.size());
    for (const facts::KernelStatistics& kernel : rank.kernels) {
        const size_t index = indexOf(analysis.steps, kernel.step);
        if (index == analysis.steps.size() || !isComparable(kernel.key)) continue;
        own[index] += kernel.medianNs * kernel.count;
        expected[index] += middle[kernel.key] * kernel.count;
    }
    for (size_t s = 0; s < own.size(); ++s) own[s] = expected[s] > 0 ? own[s] / expected[s] : 0;
    return own;
}

}  // namespace rankscope::diagnose

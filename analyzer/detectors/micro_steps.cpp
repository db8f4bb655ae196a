// SPDX-License-Identifier: Apache-2.0
#include "analyzer/detectors/micro_steps.h"

#include <algorithm>
#include <cmath>

namespace rankscope::analyzer {
namespace {

bool reduces(const CommTask& task) { return task.op == store::Op::allReduce || task.op == store::Op::reduceScatter; }

bool sameSequence(const CriticalStep& step, const std::vector<size_t>& reductions, size_t period) {
    for (size_t i = period; i < reductions.size(); ++i) {
        const CommTask& task = step.tasks[reductions[i]];
        const CommTask& before = step.tasks[reductions[i - period]];
        if (task.op != before.op || task.bytes != before.bytes || task.dataType != before.dataType || task.communicatorId != before.communicatorId) return false;
    }
    return true;
}

/// The k repeats begin one k-th of the compute apart, up to the last backward's end.
bool evenlySpaced(const CriticalStep& step, const std::vector<size_t>& reductions, size_t period) {
    // Behind a busy network they start late; their data are there in time.
    const auto progress = [&](size_t i) {
        const CommTask& task = step.tasks[reductions[i]];
        return static_cast<double>(task.readyNs >= 0 ? task.computeAtReadyNs : task.computeBeforeNs);
    };
    const double end = static_cast<double>(step.tasks[reductions.back()].computeAtEndNs);
    const double micro = end / static_cast<double>(reductions.size() / period);
    if (micro <= 0 || progress(0) > micro * (1 + MicroStepThresholds::kSpacing)) return false;
    for (size_t i = period; i < reductions.size(); i += period)
        if (std::abs(progress(i) - progress(i - period) - micro) > MicroStepThresholds::kSpacing * micro) return false;
    return true;
}

}  // namespace

GradientRepeats findRepeats(const CriticalStep& step) {
    GradientRepeats repeats;
    int64_t largest = 0;
    for (size_t i : step.own)
        if (reduces(step.tasks[i])) largest = std::max(largest, step.tasks[i].bytes);
    // Loss values and flags between the gradients would break the sequence.
    for (size_t i : step.own)
        if (reduces(step.tasks[i]) && step.tasks[i].bytes > 0 && step.tasks[i].bytes * 1000 >= largest) repeats.reductions.push_back(i);
    const size_t count = repeats.reductions.size();
    for (size_t k = std::min(count, MicroStepThresholds::kMost); k >= 2; --k) {
        if (count % k != 0 || !sameSequence(step, repeats.reductions, count / k) || !evenlySpaced(step, repeats.reductions, count / k)) continue;
        repeats.microSteps = k;
        return repeats;
    }
    return repeats;
}

}  // namespace rankscope::analyzer

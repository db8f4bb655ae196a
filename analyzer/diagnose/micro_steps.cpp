// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/micro_steps.h"

#include <algorithm>
#include <cmath>

#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
namespace {

bool reduces(const facts::CommTask& task) {
    return task.op == store::Op::allReduce || task.op == store::Op::reduceScatter;
}

bool sameSequence(const CriticalStep& step, const std::vector<size_t>& reductions, size_t period) {
    for (size_t i = period; i < reductions.size(); ++i) {
        const facts::CommTask& task = step.tasks[reductions[i]];
        const facts::CommTask& before = step.tasks[reductions[i - period]];
        if (task.op != before.op || task.bytes != before.bytes || task.dataType != before.dataType ||
            task.communicatorId != before.communicatorId)
            return false;
    }
    return true;
}

/// Compute done when a reduction's data were there, if that is known: behind a busy network it starts later.
double progressAt(const facts::CommTask& task) {
    return static_cast<double>(task.readyNs >= 0 ? task.computeAtReadyNs : task.computeBeforeNs);
}

/// The k repeats begin one k-th of the compute apart, up to the last backward's end.
bool evenlySpaced(const std::vector<double>& progress, double end, size_t period) {
    const double micro = end / static_cast<double>(progress.size() / period);
    if (micro <= 0 || progress.front() > micro * (1 + MicroStepThresholds::kSpacing)) return false;
    for (size_t i = period; i < progress.size(); i += period)
        if (std::abs(progress[i] - progress[i - period] - micro) > MicroStepThresholds::kSpacing * micro) return false;
    return true;
}

/// The same when the first forward pass lies in the step before, under the all-gathers of new parameters.
bool evenlySpacedFromFirst(const std::vector<double>& progress, double end, size_t period) {
    const size_t last = progress.size() - period;
    const double micro = (progress[last] - progress[0]) / static_cast<double>(last / period);
    if (micro <= 0 || progress[0] > micro || end - progress[last] > micro) return false;
    for (size_t i = period; i < progress.size(); i += period)
        if (std::abs(progress[i] - progress[i - period] - micro) > MicroStepThresholds::kSpacing * micro) return false;
    return true;
}

/// In front of each repeat is the pause of a forward pass. Layers that are reduced one by one come equally far apart
/// too, but without pauses.
bool paused(const std::vector<double>& progress, size_t period) {
    std::vector<double> inside;
    for (size_t i = 1; i < progress.size(); ++i)
        if (i % period != 0) inside.push_back(progress[i] - progress[i - 1]);
    const double usual = facts::median(std::move(inside));
    for (size_t i = period; i < progress.size(); i += period)
        if (progress[i] - progress[i - 1] < MicroStepThresholds::kPause * usual) return false;
    return true;
}

/// One of a period has no distances inside to compare with; starts that a busy network delays have no pauses.
bool repeats(const std::vector<double>& progress, double end, size_t period, bool readyTimesKnown) {
    if (period < 2 || !readyTimesKnown) return evenlySpaced(progress, end, period);
    return paused(progress, period) &&
           (evenlySpaced(progress, end, period) || evenlySpacedFromFirst(progress, end, period));
}

}  // namespace

GradientRepeats findRepeats(const CriticalStep& step) {
    GradientRepeats found;
    int64_t largest = 0;
    for (size_t i : step.own)
        if (reduces(step.tasks[i])) largest = std::max(largest, step.tasks[i].bytes);
    // Loss values and flags between the gradients would break the sequence.
    for (size_t i : step.own)
        if (reduces(step.tasks[i]) && step.tasks[i].bytes > 0 && step.tasks[i].bytes * 1000 >= largest)
            found.reductions.push_back(i);
    const size_t count = found.reductions.size();
    if (count == 0) return found;
    std::vector<double> progress;
    for (size_t i : found.reductions) progress.push_back(progressAt(step.tasks[i]));
    const bool known = std::all_of(found.reductions.begin(), found.reductions.end(),
                                   [&](size_t i) { return step.tasks[i].readyNs >= 0; });
    const auto end = static_cast<double>(step.tasks[found.reductions.back()].computeAtEndNs);
    for (size_t k = std::min(count, MicroStepThresholds::kMost); k >= 2; --k) {
        if (count % k != 0 || !sameSequence(step, found.reductions, count / k) ||
            !repeats(progress, end, count / k, known))
            continue;
        found.microSteps = k;
        return found;
    }
    return found;
}

}  // namespace rankscope::diagnose

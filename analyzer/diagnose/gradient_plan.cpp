// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/gradient_plan.h"

#include <algorithm>
#include <cmath>

#include "analyzer/facts/step_model.h"

namespace rankscope::diagnose {

void keepReductions(std::vector<CriticalStep>& steps) {
    for (CriticalStep& step : steps)
        std::erase_if(step.own, [&](size_t i) {
            return step.tasks[i].op == store::Op::allGather || step.tasks[i].op == store::Op::broadcast;
        });
    std::erase_if(steps, [](const CriticalStep& step) { return step.own.empty(); });
}

GradientPlan planOf(const CriticalStep& step) {
    GradientPlan plan;
    plan.computeNs = static_cast<double>(step.attribution->computeNs);
    if (step.own.empty()) return plan;
    const facts::CommTask& first = step.tasks[step.own.front()];
    plan.firstStart = static_cast<double>(first.computeBeforeNs);
    for (size_t i : step.own) {
        const facts::CommTask& task = step.tasks[i];
        plan.bytes += static_cast<double>(std::max<int64_t>(task.bytes, 0));
        plan.transferNs += static_cast<double>(task.transferNs());
        plan.backwardEnd = std::max(plan.backwardEnd, static_cast<double>(task.computeAtEndNs));
    }
    plan.messages = step.own.size();
    plan.backwardStart = plan.backwardEnd * (1 - GradientPlan::kBackwardShare);
    return plan;
}

double stepWithBuckets(const CriticalStep& step, const GradientPlan& plan, const std::vector<size_t>& replaced,
                       double bucketBytes, double alphaNs, double betaNsPerByte) {
    const std::vector<facts::ModelTask> recorded = facts::modelTasks(step.tasks);
    std::vector<facts::ModelTask> changed;
    double total = 0;
    double neededAt = plan.backwardEnd;
    std::vector<bool> gone(step.tasks.size(), false);
    for (size_t i : replaced) {
        gone[i] = true;
        total += static_cast<double>(std::max<int64_t>(step.tasks[i].bytes, 0));
        neededAt = std::max(neededAt, recorded[i].neededAt);
    }
    for (size_t i = 0; i < recorded.size(); ++i)
        if (!gone[i]) changed.push_back(recorded[i]);
    // Gradients appear evenly over the backward pass, or as early as the job was seen to send them.
    const double from = std::min(plan.firstStart, plan.backwardStart);
    constexpr double kMostBuckets =
        1e5;  // jobs have some hundred; more are only in a damaged trace, and would not fit memory
    const auto buckets = static_cast<size_t>(std::clamp(std::ceil(total / bucketBytes), 1.0, kMostBuckets));
    for (size_t k = 1; k <= buckets; ++k) {
        const double share = static_cast<double>(k) / static_cast<double>(buckets);
        const double ready = from + (plan.backwardEnd - from) * share;
        changed.push_back({ready, alphaNs + betaNsPerByte * total / static_cast<double>(buckets), neededAt});
    }
    std::stable_sort(changed.begin(), changed.end(),
                     [](const facts::ModelTask& a, const facts::ModelTask& b) { return a.readyAt < b.readyAt; });
    return facts::modelStepNs(changed, plan.computeNs);
}

}  // namespace rankscope::diagnose

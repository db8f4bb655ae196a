// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/gradient_plan.h"

#include <algorithm>
#include <cmath>

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

}  // namespace rankscope::diagnose

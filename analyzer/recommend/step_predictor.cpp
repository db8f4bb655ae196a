// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/step_predictor.h"

#include <algorithm>
#include <memory>

#include "analyzer/detectors/critical_step.h"
#include "analyzer/detectors/faster_network.h"

namespace rankscope::analyzer {
namespace {

double savedBy(const CriticalStep& step, const TransferScale& scale) {
    std::vector<double> faster = transfersOf(step);
    double lost = 0;
    for (size_t i = 0; i < step.tasks.size(); ++i) {
        const CommTask& task = step.tasks[i];
        const double now = faster[i];
        const double then = now * scale({task.communicatorId, task.op, task.bytes, {task.algorithm, task.protocol}});
        faster[i] = std::min(now, then);
        lost += std::max(0.0, then - now - static_cast<double>(task.idleNetworkAfterNs));
    }
    return savingOf(step, faster) - lost;
}

}  // namespace

StepPredictor busyPeriodPredictor(const Analysis& analysis) {
    std::set<int64_t> all;
    for (const auto& [id, communicator] : analysis.facts.communicators)
        if (communicator.size > 1) all.insert(id);
    const auto steps = std::make_shared<const std::vector<CriticalStep>>(criticalSteps(analysis, all));  // outlives this call in the function returned
    StepPredictor predictor;
    predictor.name = "exposed communication of the rank that waits least";
    predictor.scaledTransfers = [steps](const TransferScale& scale) {
        std::vector<double> savings;
        for (const CriticalStep& step : *steps) savings.push_back(savedBy(step, scale));
        return savings;
    };
    return predictor;
}

}  // namespace rankscope::analyzer

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/step_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "analyzer/detectors/critical_step.h"
#include "analyzer/detectors/faster_network.h"
#include "analyzer/replay/what_if.h"

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

/// A replay further off misses something that matters: the unchanged one is within 3 % on every job of the reference suites (reference/README.md), three times that is no scatter.
constexpr double kLargestReplayError = 0.1;

/// Durations with every transfer scaled; a kernel that carries several collectives takes the mean of their factors by bytes.
std::vector<int64_t> scaledDurations(const TaskGraph& graph, const TransferScale& scale) {
    std::vector<int64_t> durations = graph.durationNs;
    std::map<TaskId, std::pair<double, double>> factors;  // of kernels that change: sum of factor x bytes, sum of bytes
    for (const Exchange& exchange : graph.exchanges) {
        if (exchange.message()) continue;
        const double factor = scale({exchange.communicatorId, exchange.op, exchange.bytes, {exchange.algorithm, exchange.protocol}});
        const auto weight = static_cast<double>(std::max<int64_t>(1, exchange.bytes));
        for (const ExchangeMember& member : graph.membersOf(exchange)) {
            if (member.transfer == kNoTask) continue;
            auto& sums = factors[member.transfer];
            sums.first += factor * weight;
            sums.second += weight;
        }
    }
    for (const auto& [task, sums] : factors) durations[task] = std::llround(static_cast<double>(durations[task]) * sums.first / sums.second);
    return durations;
}

}  // namespace

std::optional<StepPredictor> replayPredictor(const Analysis& analysis) {
    const ReplayModel& model = analysis.replay;
    if (!model.available() || model.error() > kLargestReplayError) return std::nullopt;
    StepPredictor predictor;
    predictor.name = fmt::format("replay of the whole step ({:.2f} % off unchanged)", 100 * model.error());
    predictor.replayed = true;
    predictor.errorNs = model.error() * model.measuredStepNs;
    predictor.scaledTransfers = [&model, before = model.stepsNs(model.graph, model.unchanged)](const TransferScale& scale) {
        const std::vector<double> after = model.stepsNs(model.graph, simulate(model.graph, scaledDurations(model.graph, scale)));
        std::vector<double> savings;
        for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) savings.push_back(before[i] - after[i]);
        return savings;
    };
    const auto unchanged = std::make_shared<const ChangedJob>(unchangedJob(analysis));  // outlives this call in the function returned
    predictor.edited = [&analysis, unchanged](const std::string& text) -> std::optional<EditedStep> {
        try {
            ChangedJob job = *unchanged;
            change(job, *parseEdit(text), analysis);
            const ReplayedSaving gain = saving(unchanged->stepsNs, job.stepsNs);
            return EditedStep{gain.ns, gain.lowNs, gain.highNs, job.effect.assumed};
        } catch (const EditError&) {
            return std::nullopt;  // not for this job
        }
    };
    return predictor;
}

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

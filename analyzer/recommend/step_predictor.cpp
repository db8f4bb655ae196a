// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/step_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analyzer/diagnose/critical_step.h"
#include "analyzer/recommend/job_player.h"

namespace rankscope::recommend {
namespace {

double savedBy(const diagnose::CriticalStep& step, const TransferScale& scale) {
    std::vector<double> faster = diagnose::transfersOf(step);
    double lost = 0;
    for (size_t i = 0; i < step.tasks.size(); ++i) {
        const facts::CommTask& task = step.tasks[i];
        const double now = faster[i];
        const double then = now * scale(keyOf(task));
        faster[i] = std::min(now, then);
        lost += std::max(0.0, then - now - static_cast<double>(task.idleNetworkAfterNs));
    }
    return diagnose::savedAtMost(step, faster) - lost;
}

/// `unchanged`, `before`: the job without any change, and without the last one.
StepPredictor judgeOf(const StepPredictor& like, const PlayedJob& unchanged, const PlayedJob& before,
                      const PlayedJob& job) {
    StepPredictor predictor = like;
    predictor.gained = edits::gainOf(before.steps(), job.steps());
    predictor.total = edits::gainOf(unchanged.steps(), job.steps());
    predictor.pipeline = job.pipeline();
    predictor.scaledTransfers = [job](const TransferScale& scale) { return job.savedBy(scale); };
    predictor.edited = [job](const std::string& edit) { return job.gainBy(edit); };
    predictor.playAhead = [job](const std::vector<std::string>& changes) { job.playAhead(changes); };
    predictor.expected = [job](const std::vector<std::string>& changes) { return job.expectedGains(changes); };
    predictor.messages = [job] { return job.messages(); };
    predictor.after = [like, unchanged, job](const JobChange& change) -> std::optional<StepPredictor> {
        const auto next = job.with(change);
        if (!next) return std::nullopt;
        return judgeOf(like, unchanged, job, *next);
    };
    return predictor;
}

}  // namespace

std::optional<StepPredictor> replayPredictor(const job::Analysis& analysis, double noiseNs, Playing playing) {
    const replay::ReplayModel& model = analysis.replay;
    if (!model.available()) return std::nullopt;
    StepPredictor predictor;
    predictor.name = fmt::format("replay of the whole step ({:.2f} % off unchanged)", 100 * model.error());
    predictor.replayed = true;
    predictor.errorNs = model.error() * model.measuredStepNs;
    const PlayedJob unchanged(analysis, noiseNs, std::move(playing));
    return judgeOf(predictor, unchanged, unchanged, unchanged);
}

StepPredictor busyPeriodPredictor(const job::Analysis& analysis) {
    std::set<int64_t> all;
    for (const auto& [id, communicator] : analysis.facts.communicators)
        if (communicator.size > 1) all.insert(id);
    const auto steps = std::make_shared<const std::vector<diagnose::CriticalStep>>(
        diagnose::criticalSteps(analysis, all));  // outlives this call in the function returned
    StepPredictor predictor;
    predictor.name = "exposed communication of the rank that waits least";
    predictor.scaledTransfers = [steps](const TransferScale& scale) {
        std::vector<double> savings;
        for (const diagnose::CriticalStep& step : *steps) savings.push_back(savedBy(step, scale));
        return savings;
    };
    return predictor;
}

}  // namespace rankscope::recommend

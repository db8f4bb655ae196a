// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/pipeline_times.h"

#include <algorithm>
#include <optional>

#include "analyzer/facts/statistics.h"
#include "analyzer/job/analysis.h"
#include "analyzer/job/light_recording.h"

namespace rankscope::job {
namespace {

/// Idle for which the host is no reason, by analysed step.
std::vector<double> bareIdleNs(const RecordedJob& job, const facts::RankSummary& rank) {
    std::vector<double> idleNs(job.steps.size());
    for (const facts::IdleGap& gap : rank.idleGaps) {
        if (gap.cause != facts::IdleCause::other && gap.cause != facts::IdleCause::dependency &&
            gap.cause != facts::IdleCause::blockingCall)
            continue;
        const auto step = std::ranges::lower_bound(job.steps, gap.step);
        if (step != job.steps.end() && *step == gap.step)
            idleNs[static_cast<size_t>(step - job.steps.begin())] += static_cast<double>(gap.durNs);
    }
    return idleNs;
}

/// Communication inside the stage that its micro-batches wait for.
bool insideStage(facts::CommRole role) {
    return role == facts::CommRole::activations || role == facts::CommRole::experts ||
           role == facts::CommRole::shardedParameters;
}

/// `bareNs`: idle of that step for which the host is no reason; none where the trace does not tell when the device was
/// idle.
StageTimes timesOf(const RecordedJob& job, const facts::RankSummary& rank, int step, bool firstStage,
                   std::optional<double> bareNs, std::vector<double>& transfers) {
    StageTimes times;
    const facts::Attribution* attribution = job.attribution(rank, step);
    if (attribution == nullptr) return times;
    times.stepNs = static_cast<double>(attribution->stepNs);
    times.workNs = static_cast<double>(attribution->computeNs + attribution->memoryNs);
    times.bubbleNs = bareNs.value_or(static_cast<double>(attribution->idleNs));
    double beforeLastSend = -1;
    for (const facts::CommTask& task : job.tasks(rank, step)) {
        const facts::CommRole role = job.layout.role(task);
        if (insideStage(role)) {
            times.workNs += static_cast<double>(task.exposedWaitNs + task.exposedTransferNs);
            times.insideWaitNs += static_cast<double>(task.exposedWaitNs);
        }
        if (role != facts::CommRole::pipeline) continue;
        times.bubbleNs += static_cast<double>(task.exposedWaitNs);
        times.exposedTransferNs += static_cast<double>(task.exposedTransferNs);
        // The receive of the next step may start in this one already.
        if (task.op == store::Op::send) beforeLastSend = static_cast<double>(task.computeBeforeNs);
        transfers.push_back(static_cast<double>(task.transferNs()));
    }
    times.largestExposedTransferNs = times.exposedTransferNs;
    // The last message of every stage but the first is the gradient it sends behind its last backward. What was
    // computed until then sums do not tell: there the optimizer's part counts as work of the stage.
    if (bareNs && !firstStage && beforeLastSend >= 0)
        times.tailNs = static_cast<double>(attribution->computeNs) - beforeLastSend;
    return times;
}

void add(const StageTimes& part, double weight, StageTimes& sum) {
    sum.stepNs += weight * part.stepNs;
    sum.workNs += weight * part.workNs;
    sum.insideWaitNs += weight * part.insideWaitNs;
    sum.tailNs += weight * part.tailNs;
    sum.bubbleNs += weight * part.bubbleNs;
    sum.exposedTransferNs += weight * part.exposedTransferNs;
    sum.largestExposedTransferNs = std::max(sum.largestExposedTransferNs, part.largestExposedTransferNs);
}

/// The first stage's optimizer takes as long as the others', for its share of the layers.
void splitTails(PipelineStep& step) {
    double tails = 0, works = 0;
    for (size_t s = 1; s < step.stages.size(); ++s) {
        tails += step.stages[s].tailNs;
        works += step.stages[s].workNs;
    }
    StageTimes& first = step.stages.front();
    first.tailNs = works > 0 ? tails / works * first.workNs : 0;
    for (StageTimes& stage : step.stages) stage.workNs = std::max(0.0, stage.workNs - stage.tailNs);
}

}  // namespace

double PipelineStep::stepNs() const {
    double longest = 0;
    for (const StageTimes& stage : stages) longest = std::max(longest, stage.stepNs);
    return longest;
}

double PipelineStep::bubbleShare() const {
    double share = 0;
    for (const StageTimes& stage : stages) share += stage.stepNs > 0 ? stage.bubbleNs / stage.stepNs : 0;
    return stages.empty() ? 0 : share / static_cast<double>(stages.size());
}

std::vector<int> PipelineTimes::allRanks() const {
    std::vector<int> all;
    for (const std::vector<int>& stage : ranks) all.insert(all.end(), stage.begin(), stage.end());
    std::sort(all.begin(), all.end());
    return all;
}

PipelineTimes timesOfPipelines(const RecordedJob& job) {
    PipelineTimes times;
    for (const facts::Pipeline& pipeline : job.layout.pipelines) {
        if (!times.shape) {
            times.shape = pipeline;
            times.ranks.resize(pipeline.stages.size());
        }
        const facts::Pipeline& first = *times.shape;
        if (pipeline.stages.size() != first.stages.size() || pipeline.microBatches != first.microBatches ||
            pipeline.virtualStages != first.virtualStages)
            continue;
        for (size_t s = 0; s < pipeline.stages.size(); ++s) times.ranks[s].push_back(pipeline.stages[s]);
    }
    if (!times.shape) return times;
    const bool summarised = isSummarised(job);
    std::vector<double> transfers;
    for (const int step : job.steps) times.steps.push_back({step, std::vector<StageTimes>(times.ranks.size())});
    for (size_t s = 0; s < times.ranks.size(); ++s) {
        std::vector<const facts::RankSummary*> recorded;
        for (int rank : times.ranks[s])
            if (const facts::RankSummary* summary = job.findRank(rank)) recorded.push_back(summary);
        for (const facts::RankSummary* rank : recorded) {
            const std::vector<double> bareNs = bareIdleNs(job, *rank);
            for (size_t i = 0; i < times.steps.size(); ++i)
                add(timesOf(job, *rank, times.steps[i].step, s == 0,
                            summarised ? std::nullopt : std::optional(bareNs[i]), transfers),
                    1.0 / static_cast<double>(recorded.size()), times.steps[i].stages[s]);
        }
    }
    std::erase_if(times.steps, [](const PipelineStep& step) {
        return !std::ranges::all_of(step.stages,
                                    [](const StageTimes& stage) { return stage.stepNs > 0 && stage.workNs > 0; });
    });
    std::ranges::for_each(times.steps, splitTails);
    times.transferNs = facts::median(std::move(transfers));
    return times;
}

}  // namespace rankscope::job

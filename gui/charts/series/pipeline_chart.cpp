// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/pipeline_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/charts/series/stage_passes.h"

namespace rankscope::gui {
namespace {

std::vector<const StepRow*> stepsOf(const StepTable& table, int32_t rank) {
    std::vector<const StepRow*> steps;
    for (const StepRow& row : table.rows)
        if (row.rank == rank) steps.push_back(&row);
    return steps;
}

// A step as the job usually does it.
const StepRow* medianStep(std::vector<const StepRow*> steps) {
    std::vector<const StepRow*> warm;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(warm), [](const StepRow* row) { return !row->warmUp; });
    if (!warm.empty()) steps = std::move(warm);
    std::sort(steps.begin(), steps.end(), [](const StepRow* a, const StepRow* b) { return a->durNs < b->durNs; });
    return steps.empty() ? nullptr : steps[steps.size() / 2];
}

// Time covered by passes sorted by start.
int64_t covered(const std::vector<PipelinePass>& passes) {
    int64_t sum = 0, upTo = INT64_MIN;
    for (const PipelinePass& pass : passes) {
        const int64_t from = std::max(pass.range.beginNs, upTo);
        if (pass.range.endNs > from) sum += pass.range.endNs - from;
        upTo = std::max(upTo, pass.range.endNs);
    }
    return sum;
}

void measureBubbles(PipelineChart& chart) {
    chart.range = {INT64_MAX, INT64_MIN};
    for (const PipelineStage& stage : chart.stages) {
        for (const PipelinePass& pass : stage.passes) {
            chart.range.beginNs = std::min(chart.range.beginNs, pass.range.beginNs);
            chart.range.endNs = std::max(chart.range.endNs, pass.range.endNs);
        }
    }
    if (chart.range.beginNs >= chart.range.endNs) {
        chart.range = {};
        return;
    }
    double sum = 0;
    for (PipelineStage& stage : chart.stages) {
        const auto wholeNs = static_cast<double>(std::max(chart.stepNs, chart.range.span()));
        stage.bubble = static_cast<double>(chart.range.span() - covered(stage.passes)) / wholeNs;
        sum += stage.bubble;
    }
    chart.bubble = sum / static_cast<double>(chart.stages.size());
}

}  // namespace

PipelineCharts::PipelineCharts(store::TraceReader& reader)
    : m_job(readChartJob(reader)), m_steps(readStepTable(reader)) {
    const MessagePairs pairs = readMessagePairs(reader, m_job);
    m_anyMessages = !pairs.empty();
    m_chains = findPipelines(pairs);
}

std::optional<size_t> PipelineCharts::chainOf(int32_t rank) const {
    for (size_t chain = 0; chain < m_chains.size(); ++chain)
        if (std::find(m_chains[chain].begin(), m_chains[chain].end(), rank) != m_chains[chain].end()) return chain;
    return std::nullopt;
}

PipelineChart PipelineCharts::chart(store::TraceReader& reader, size_t chain, int32_t step) const {
    PipelineChart chart;
    if (m_chains.empty()) {
        chart.nothing = m_anyMessages ? "Not a pipeline job: the sends and receives of this run do not go forth and "
                                        "back along a chain of ranks."
                                      : "Not a pipeline job: no rank sends to another one.";
        return chart;
    }
    chart.chains = m_chains;
    chart.chain = std::min(chain, m_chains.size() - 1);
    const PipelineChain& ranks = m_chains[chart.chain];
    const auto steps = stepsOf(m_steps, ranks.front());
    for (const StepRow* row : steps) chart.steps.push_back(row->step);
    const auto wanted = std::find_if(steps.begin(), steps.end(), [&](const StepRow* row) { return row->step == step; });
    const StepRow* shown = wanted != steps.end() ? *wanted : medianStep(steps);
    if (!shown) {
        chart.nothing =
            "No steps are known in this recording, so that the pipeline's micro-batches cannot be told apart.";
        return chart;
    }
    chart.step = shown->step;
    chart.stepNs = shown->target().range.span();
    bool byRanges = true;
    for (size_t i = 0; i < ranks.size() && i < PipelineChart::kMostStages; ++i) {
        const size_t row = m_steps.find(ranks[i], shown->step);
        PipelineStage stage{ranks[i], {}, 0};
        if (row != m_steps.rows.size()) {
            const TimeRange range = m_steps.rows[row].target().range;
            stage.passes = passesByRanges(reader, ranks[i], range);
            if (stage.passes.empty()) {
                stage.passes = passesByMessages(
                    reader, {ranks[i], i == 0 ? -1 : ranks[i - 1], i + 1 == ranks.size() ? -1 : ranks[i + 1]}, range);
                byRanges = false;
            }
        }
        chart.stages.push_back(std::move(stage));
    }
    measureBubbles(chart);
    if (chart.range.span() <= 0) {
        chart.nothing = fmt::format("No compute kernel is recorded in step {} of this pipeline.", chart.step);
        return chart;
    }
    chart.note = byRanges ? "A box is the kernels launched in one NVTX range named forward or backward; its number "
                            "counts the stage's passes of the step. Shaded: the bubble, no pass runs; its share is of "
                            "the step, (P-1)/(M V + P-1) is of the time from first pass to last."
                          : "There are no NVTX ranges named forward and backward: a box is the compute between two "
                            "messages. Shaded: the bubble, nothing is computed; its share is of the step.";
    return chart;
}

}  // namespace rankscope::gui

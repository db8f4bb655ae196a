// SPDX-License-Identifier: Apache-2.0
#include "analyzer/edits/micro_batches.h"

#include <fmt/format.h>

#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/pipeline_rebuild.h"
#include "analyzer/edits/trial_graph.h"

namespace rankscope::edits {
namespace {

constexpr size_t kMostTasks = 100'000'000;  // 6 GiB of graph

}  // namespace

void PipelineOrder::apply(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect) const {
    graph = applied(TrialGraph(graph, analysis), effect);
}

replay::TaskGraph PipelineOrder::applied(const TrialGraph& of, EditEffect& effect) const {
    const replay::TaskGraph& graph = of.graph();
    const PipelineParts& parts = of.pipeline();
    const PipelineShape before = parts.shape();
    PipelineShape shape = before;
    shape.microBatches = m_to.microBatches.value_or(before.microBatches);
    shape.virtualStages = m_to.virtualStages.value_or(before.virtualStages);
    if (m_to.schedule)
        shape.schedule = *m_to.schedule;
    else if (m_to.virtualStages)
        shape.schedule = shape.virtualStages > 1            ? "interleaved"
                         : before.schedule == "interleaved" ? "1f1b"
                                                            : before.schedule;
    if (m_to.schedule && !m_to.virtualStages && shape.schedule != "interleaved") shape.virtualStages = 1;
    if (const std::string why = impossible(shape); !why.empty()) throw EditError(why);
    const double factor = static_cast<double>(shape.microBatches) / before.microBatches;
    if (factor * static_cast<double>(graph.size()) > static_cast<double>(kMostTasks))
        throw EditError(fmt::format("{} micro-batches are too many to be played", shape.microBatches));
    replay::TaskGraph rebuilt = rebuildPipeline(graph, of.analysis(), parts, shape);
    effect.tokens *= factor;
    effect.pipeline.emplace();
    effect.pipeline->schedule = shape.schedule;
    effect.pipeline->microBatches = shape.microBatches;
    effect.pipeline->virtualStages = shape.virtualStages;
    if (shape.microBatches != before.microBatches)
        effect.assume("micro-batches keep their size: a step works on more or fewer tokens");
    if (shape.virtualStages > before.virtualStages)
        effect.assume("memory for the activations of interleaved stages is there");
    return rebuilt;
}

std::unique_ptr<Edit> parseMicroBatches(EditArguments& arguments) {
    PipelineOrder::To to;
    to.microBatches = arguments.requiredWhole("count", 1);
    to.virtualStages = arguments.whole("virtual", 1);
    return std::make_unique<PipelineOrder>(std::move(to));
}

std::unique_ptr<Edit> parseSchedule(EditArguments& arguments) {
    PipelineOrder::To to;
    to.schedule = arguments.word("name", {"gpipe", "1f1b", "interleaved"}, "1f1b");
    to.virtualStages = arguments.whole("virtual", 1);
    if (to.virtualStages.value_or(1) > 1 && *to.schedule != "interleaved")
        arguments.refuse("virtual stages need name=interleaved");
    if (*to.schedule == "interleaved" && !to.virtualStages) arguments.refuse("virtual is missing");
    return std::make_unique<PipelineOrder>(std::move(to));
}

}  // namespace rankscope::edits

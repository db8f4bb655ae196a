// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "analyzer/edits/edit_arguments.h"
#include "analyzer/edits/pipeline.h"
#include "analyzer/edits/trial_graph.h"
#include "analyzer/edits/what_if.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::edits {
namespace {

constexpr size_t kMostTasks = 100'000'000;  // 6 GiB of graph

/// Some of `steps` in a row: a plan with many more micro-batches than were recorded is played for few of them, so that
/// its graph is hardly larger than the recorded one and a what-if takes no more memory than the analysis. Those whose
/// span is the median one of all: what happened in one step alone stands for no others. `factor`: by which a step
/// grows.
std::vector<int> stepsToPlay(const std::vector<int>& steps, double factor, const TaskGraph& graph,
                             const Schedule& schedule) {
    const auto fit = static_cast<std::ptrdiff_t>(static_cast<double>(steps.size()) / factor);
    const auto count = std::clamp<std::ptrdiff_t>(fit, 1, std::ssize(steps));
    std::vector<std::pair<double, std::vector<int>>> windows;  // by span
    for (auto first = steps.begin(); steps.end() - first >= count; ++first) {
        std::vector<int> window(first, first + count);
        windows.emplace_back(spanNs(graph, schedule, window), std::move(window));
    }
    const auto middle = windows.begin() + (std::ssize(windows) - 1) / 2;
    std::ranges::nth_element(windows, middle);
    return std::move(middle->second);
}

std::string stepsText(const std::vector<int>& steps) {
    return steps.size() == 1 ? fmt::format("step {} stands", steps.front())
                             : fmt::format("steps {} to {} stand", steps.front(), steps.back());
}

/// The others send and receive otherwise than the schedule does.
void assumeForAll(const std::vector<int>& steps, EditEffect& effect) {
    effect.assume(fmt::format("{} for all: only there messages come in the order of the schedule", stepsText(steps)));
}

/// Of kernels of micro-batches that come none was recorded: they vary as the recorded steps do. ns, standard deviation.
double deviationOfSteps(const replay::ReplayModel& replay) {
    if (!replay.available()) return 0;
    return facts::robustDeviation(stepsBetweenEnds(replay.unchangedStepsNs));
}

TaskGraph reordered(const PipelineOrder& to, const TrialGraph& of, EditEffect& effect) {
    const TaskGraph& graph = of.graph();
    PresentPipeline present{of.pipeline(), nullptr};
    const PipelineShape before = present.parts->shape();
    PipelineShape shape = before;
    shape.microBatches = to.microBatches.value_or(before.microBatches);
    shape.virtualStages = to.virtualStages.value_or(before.virtualStages);
    if (to.schedule)
        shape.schedule = *to.schedule;
    else if (to.virtualStages)
        shape.schedule = shape.virtualStages > 1            ? "interleaved"
                         : before.schedule == "interleaved" ? "1f1b"
                                                            : before.schedule;
    if (to.schedule && !to.virtualStages && shape.schedule != "interleaved") shape.virtualStages = 1;
    if (const std::string why = impossible(shape); !why.empty()) throw EditError(why);
    if (shape.schedule != "interleaved") shape.passByPass = false;
    if (shape.schedule == "interleaved" && before.schedule != "interleaved") {
        shape.passByPass = effect.outlook == Outlook::cheap;
        effect.open = true;
        effect.assume(
            "messages of interleaved stages leave behind each forward and backward pass together, as in Megatron-LM; "
            "at best behind each pass, as in PyTorch");
    }
    const double factor = static_cast<double>(shape.microBatches) / before.microBatches;
    present.schedule = of.schedule();
    const size_t known = present.parts->steps().size();
    const bool leavesOut = present.parts->leavesOut();
    const std::vector<int> steps = stepsToPlay(present.parts->steps(), factor, graph, *present.schedule);
    const double nowNs = spanNs(graph, *present.schedule, steps);
    const double share = static_cast<double>(steps.size()) / static_cast<double>(known);
    if (share * factor * static_cast<double>(graph.size()) > static_cast<double>(kMostTasks))
        throw EditError(fmt::format("{} micro-batches are too many to be played", shape.microBatches));
    const double size = to.keepsBatch ? 1 / factor : 1;
    TaskGraph rebuilt = rebuildPipeline(of, std::move(present), shape, size, steps, effect);
    if (steps.size() < known)
        effect.assume(
            fmt::format("{} for all: no more of {} micro-batches are played", stepsText(steps), shape.microBatches));
    else if (leavesOut)
        assumeForAll(steps, effect);
    if (steps.size() < known || leavesOut) effect.played = {steps, nowNs / effect.tokens};
    if (!to.keepsBatch) effect.tokens *= factor;
    effect.pipeline.emplace();
    effect.pipeline->schedule = shape.schedule;
    effect.pipeline->microBatches = shape.microBatches;
    effect.pipeline->virtualStages = shape.virtualStages;
    if (shape.microBatches != before.microBatches) {
        effect.chanceNs = std::hypot(effect.chanceNs, deviationOfSteps(of.analysis().replay));
        effect.assume(to.keepsBatch ? "kernels and messages of a smaller micro-batch are as much shorter, but calls of "
                                      "the host and what adds its gradients to the others'"
                                    : "micro-batches are played at their present size; the step is that of as many "
                                      "tokens as now");
    }
    if (shape.virtualStages > before.virtualStages)
        effect.assume("memory for the activations of interleaved stages is there");
    return rebuilt;
}

}  // namespace

std::unique_ptr<Edit> pipelineInOrder(PipelineOrder to) {
    return std::make_unique<Edit>(
        NewGraph([to](const TrialGraph& of, EditEffect& effect) { return reordered(to, of, effect); }));
}

std::unique_ptr<Edit> parseMicroBatches(EditArguments& arguments) {
    PipelineOrder to;
    to.microBatches = arguments.requiredWhole("count", 1);
    to.virtualStages = arguments.whole("virtual", 1);
    to.keepsBatch = arguments.word("batch", {"kept", "grown"}, "grown") == "kept";
    return pipelineInOrder(std::move(to));
}

std::unique_ptr<Edit> parseSchedule(EditArguments& arguments) {
    PipelineOrder to;
    to.schedule = arguments.word("name", {"gpipe", "1f1b", "interleaved"}, "1f1b");
    to.virtualStages = arguments.whole("virtual", 1);
    if (to.virtualStages.value_or(1) > 1 && *to.schedule != "interleaved")
        arguments.refuse("virtual stages need name=interleaved");
    if (*to.schedule == "interleaved" && !to.virtualStages) arguments.refuse("virtual is missing");
    return pipelineInOrder(std::move(to));
}

namespace {

struct LayerMove {
    int from = 0, to = 0;  // stages
    int count = 1;
};

/// What a stage holds: means over its ranks, ns per step.
struct Stage {
    double workNs = 0;
    std::deque<double> layers;  // the work of each, in the order of the model; empty: not to be seen
};

std::vector<Stage> stagesOf(const TaskGraph& graph, const PipelineParts& parts, const EditEffect& effect) {
    std::vector<Stage> stages(static_cast<size_t>(parts.shape().stages));
    std::vector<double> ranks(stages.size(), 0);
    std::vector<int> counts(stages.size(), 0);
    for (const auto& [rank, number] : parts.places().stages) {
        const auto s = static_cast<size_t>(number);
        Stage& stage = stages[s];
        const int layers = parts.layersPerStage(rank);
        counts[s] = ranks[s] == 0 || counts[s] == layers ? layers : 0;
        ranks[s] += 1;
        for (int step : parts.steps())
            for (const auto& [pass, calls] : parts.step(rank, step).passes)
                if (pass.part == StepPart::forward || pass.part == StepPart::backward)
                    for (TaskId kernel : parts.kernelsOf(calls))
                        stage.workNs += static_cast<double>(graph.durationNs[kernel]);
    }
    const bool moved = effect.stageLayers.size() == stages.size();  // the kernels still repeat as often as before
    for (size_t s = 0; s < stages.size(); ++s) {
        Stage& stage = stages[s];
        stage.workNs /= std::max(1.0, ranks[s] * static_cast<double>(parts.steps().size()));
        if (moved) {
            const std::vector<double>& shares = effect.stageLayers[s];
            for (double share : shares) stage.layers.push_back(share * stage.workNs);
        } else if (counts[s] > 0) {
            stage.layers.assign(static_cast<size_t>(counts[s]), stage.workNs / counts[s]);
        }
    }
    return stages;
}

/// The layer of `from` that is nearest to `to` in the model goes to the near end of it, so that a move and the one back
/// are none.
void moveOne(std::vector<Stage>& stages, size_t from, size_t to) {
    std::deque<double>& source = stages[from].layers;
    const bool onwards = from < to;
    const double layerNs = onwards ? source.back() : source.front();
    if (onwards) {
        source.pop_back();
        stages[to].layers.push_front(layerNs);
    } else {
        source.pop_front();
        stages[to].layers.push_back(layerNs);
    }
    stages[from].workNs -= layerNs;
    stages[to].workNs += layerNs;
}

/// Moves one layer at a time from the heaviest stage to the lightest while the longest work falls.
std::vector<Stage> balanced(std::vector<Stage> stages) {
    while (true) {
        const auto heaviest =
            static_cast<size_t>(std::ranges::max_element(stages, {}, &Stage::workNs) - stages.begin());
        const auto lightest =
            static_cast<size_t>(std::ranges::min_element(stages, {}, &Stage::workNs) - stages.begin());
        if (heaviest == lightest || stages[heaviest].layers.size() < 2) return stages;
        const double layerNs = heaviest < lightest ? stages[heaviest].layers.back() : stages[heaviest].layers.front();
        if (stages[lightest].workNs + layerNs >= stages[heaviest].workNs) return stages;
        moveOne(stages, heaviest, lightest);
    }
}

/// For the edits that follow. Shares of the stage's work: what changes that changes all of its layers.
void remember(const std::vector<Stage>& stages, EditEffect& effect) {
    effect.stageLayers.clear();
    for (const Stage& stage : stages) {
        std::vector<double>& shares = effect.stageLayers.emplace_back();
        for (double layerNs : stage.layers) shares.push_back(layerNs / stage.workNs);
    }
}

/// Scales what a stage's ranks do for their layers, host and device.
void scale(TaskGraph& graph, const PipelineParts& parts, int stage, double factor) {
    const auto scaleTask = [&](TaskId task) { graph.durationNs[task] = scaledNs(graph.durationNs[task], factor); };
    const auto scaleCall = [&](TaskId call) {
        if (parts.launchedBy(call).empty()) return;  // waits and marks stay
        scaleTask(call);
        graph.leadNs[call] = scaledNs(graph.leadNs[call], factor);
        for (TaskId task : parts.launchedBy(call)) {
            if (graph.info[task].kind != TaskKind::arrival) {
                scaleTask(task);
                continue;
            }
            for (const ExchangeMember& member : graph.membersOf(graph.exchanges[graph.info[task].detail]))
                if (member.arrival == task) scaleTask(member.transfer);
        }
    };
    for (const auto& [rank, number] : parts.places().stages)
        for (int step : parts.steps())
            for (const auto& [pass, calls] : parts.step(rank, step).passes)
                if (number == stage && pass.part != StepPart::head) std::ranges::for_each(calls, scaleCall);
}

/// Layers move between the stages of a pipeline. A stage that loses n of its L layers does its passes, and the part of
/// its step that follows its layers (sums of gradients, optimizer), in 1 - n / L of the time; a stage that gets them
/// has their time added. Where kernels do not repeat, no whole layers are known and stages are balanced by fractions.
/// Without a move: as many layers as balance the stages best; `byParts`: layers can be cut, the stages become even.
void moveLayers(const std::optional<LayerMove>& move, bool byParts, TaskGraph& graph, const Analysis& analysis,
                EditEffect& effect) {
    const PipelineParts parts(graph, analysis);
    const std::vector<Stage> stages = stagesOf(graph, parts, effect);
    const bool whole =
        std::ranges::all_of(stages, [](const Stage& stage) { return !stage.layers.empty() && stage.workNs > 0; });
    if (std::ranges::any_of(stages, [](const Stage& stage) { return stage.workNs <= 0; }))
        throw EditError("a stage computes nothing");
    std::vector<Stage> wanted = stages;
    if (move) {
        const auto count = static_cast<int>(stages.size());
        if (move->from >= count || move->to >= count || move->from == move->to)
            throw EditError(fmt::format("stages are 0 to {}, and two different ones", count - 1));
        if (!whole)
            throw EditError("the kernels of a stage do not repeat: its layers are not to be seen",
                            "balance them: layers without arguments");
        const auto from = static_cast<size_t>(move->from), to = static_cast<size_t>(move->to);
        if (move->count >= static_cast<int>(stages[from].layers.size()))
            throw EditError(
                fmt::format("stage {} has {} layers and must keep one", move->from, stages[from].layers.size()));
        for (int i = 0; i < move->count; ++i) moveOne(wanted, from, to);
    } else if (whole && !byParts) {
        wanted = balanced(stages);
        std::string layers;
        bool moved = false;
        for (size_t s = 0; s < stages.size(); ++s) {
            moved = moved || wanted[s].layers.size() != stages[s].layers.size();
            layers += fmt::format("{}{}", layers.empty() ? "" : ", ", wanted[s].layers.size());
        }
        if (!moved)
            throw EditError("moving a whole layer makes no stage lighter than the heaviest one is now",
                            "layers:parts=yes moves parts of layers");
        effect.assume(fmt::format("layers per stage: {}", layers));
    } else {
        double all = 0;
        for (const Stage& stage : stages) all += stage.workNs;
        for (Stage& stage : wanted) stage = {all / static_cast<double>(stages.size()), {}};  // no whole layers any more
        effect.assume(byParts ? "work moves in parts of layers: the stages are taken to be even"
                              : "no whole layers are to be seen: the stages are taken to be even");
    }
    if (parts.leavesOut()) {
        effect.played = {parts.steps(), spanNs(graph, simulate(graph), parts.steps()) / effect.tokens};
        assumeForAll(parts.steps(), effect);
    }
    for (size_t s = 0; s < stages.size(); ++s)
        if (wanted[s].workNs != stages[s].workNs)
            scale(graph, parts, static_cast<int>(s), wanted[s].workNs / stages[s].workNs);
    remember(wanted, effect);
}

}  // namespace

std::unique_ptr<Edit> parseLayers(EditArguments& arguments) {
    const std::optional<int> from = arguments.whole("from"), to = arguments.whole("to"),
                             count = arguments.whole("count", 1);
    const bool parts = arguments.word("parts", {"yes", "no"}, "no") == "yes";
    if (parts && (from || to || count)) arguments.refuse("parts balances all stages");
    if (!from && !to && (parts || !count)) return editBy(moveLayers, std::optional<LayerMove>(), parts);
    if (!from || !to) arguments.refuse("both from and to are needed");
    return editBy(moveLayers, LayerMove{*from, *to, count.value_or(1)}, false);
}

}  // namespace rankscope::edits

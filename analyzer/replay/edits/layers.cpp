// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/edits/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analyzer/replay/edits/edit_arguments.h"
#include "analyzer/replay/edits/pipeline_parts.h"

namespace rankscope::analyzer {
namespace {

/// What a stage holds, and how long it works on it in a step, ns: means over its ranks.
struct Stage {
    double workNs = 0;
    int layers = 0;   // 0: not to be seen
};

std::vector<Stage> stagesOf(const TaskGraph& graph, const PipelineParts& parts) {
    std::vector<Stage> stages(static_cast<size_t>(parts.shape().stages));
    std::vector<double> ranks(stages.size(), 0);
    for (const auto& [rank, number] : parts.stages()) {
        Stage& stage = stages[static_cast<size_t>(number)];
        const int layers = parts.layersPerStage(rank);
        stage.layers = ranks[static_cast<size_t>(number)] == 0 || stage.layers == layers ? layers : 0;
        ranks[static_cast<size_t>(number)] += 1;
        for (int step : parts.steps())
            for (const auto* passes : {&parts.step(rank, step).forward, &parts.step(rank, step).backward})
                for (const auto& [which, calls] : *passes)
                    for (TaskId call : calls)
                        for (TaskId task : parts.launchedBy(call))
                            if (graph.info[task].kind == TaskKind::kernel) stage.workNs += static_cast<double>(graph.durationNs[task]);
    }
    for (size_t s = 0; s < stages.size(); ++s) stages[s].workNs /= std::max(1.0, ranks[s] * static_cast<double>(parts.steps().size()));
    return stages;
}

/// Work of the stages with the layers' own times: those that stay and those that come.
struct Plan {
    std::vector<double> workNs;
    std::vector<int> layers;
};

/// Moves one layer at a time from the heaviest stage to the lightest while the longest work falls.
Plan balanced(const std::vector<Stage>& stages) {
    Plan plan;
    for (const Stage& stage : stages) {
        plan.workNs.push_back(stage.workNs);
        plan.layers.push_back(stage.layers);
    }
    while (true) {
        const auto heaviest = static_cast<size_t>(std::max_element(plan.workNs.begin(), plan.workNs.end()) - plan.workNs.begin());
        const auto lightest = static_cast<size_t>(std::min_element(plan.workNs.begin(), plan.workNs.end()) - plan.workNs.begin());
        if (plan.layers[heaviest] < 2) return plan;
        const double layerNs = plan.workNs[heaviest] / plan.layers[heaviest];
        if (plan.workNs[lightest] + layerNs >= plan.workNs[heaviest]) return plan;
        plan.workNs[heaviest] -= layerNs;
        plan.workNs[lightest] += layerNs;
        --plan.layers[heaviest];
        ++plan.layers[lightest];
    }
}

/// Scales what a stage's ranks do for their layers, host and device.
void scale(TaskGraph& graph, const PipelineParts& parts, int stage, double factor) {
    const auto scaled = [factor](auto ns) { return static_cast<decltype(ns)>(std::llround(static_cast<double>(ns) * factor)); };
    for (const auto& [rank, number] : parts.stages()) {
        if (number != stage) continue;
        for (int step : parts.steps()) {
            const StageStep& part = parts.step(rank, step);
            const auto scaleCalls = [&](const Calls& calls) {
                for (TaskId call : calls) {
                    if (parts.launchedBy(call).empty()) continue;  // waits and marks stay
                    graph.durationNs[call] = scaled(graph.durationNs[call]);
                    graph.leadNs[call] = scaled(graph.leadNs[call]);
                    for (TaskId task : parts.launchedBy(call)) {
                        if (graph.info[task].kind != TaskKind::arrival) {
                            graph.durationNs[task] = scaled(graph.durationNs[task]);
                            continue;
                        }
                        for (const ExchangeMember& member : graph.membersOf(graph.exchanges[graph.info[task].detail]))
                            if (member.arrival == task) graph.durationNs[member.transfer] = scaled(graph.durationNs[member.transfer]);
                    }
                }
            };
            for (const auto& [which, calls] : part.forward) scaleCalls(calls);
            for (const auto& [which, calls] : part.backward) scaleCalls(calls);
            scaleCalls(part.tail);
        }
    }
}

}  // namespace

void MoveLayers::apply(TaskGraph& graph, const Analysis& analysis, EditEffect& effect) const {
    const PipelineParts parts(graph, analysis);
    const std::vector<Stage> stages = stagesOf(graph, parts);
    const bool whole = std::all_of(stages.begin(), stages.end(), [](const Stage& stage) { return stage.layers > 0 && stage.workNs > 0; });
    std::vector<double> work;
    for (const Stage& stage : stages) work.push_back(stage.workNs);
    if (*std::min_element(work.begin(), work.end()) <= 0) throw EditError("a stage computes nothing");
    std::vector<double> wanted = work;
    if (m_move) {
        const auto count = static_cast<int>(stages.size());
        if (m_move->from >= count || m_move->to >= count || m_move->from == m_move->to) throw EditError(fmt::format("stages are 0 to {}, and two different ones", count - 1));
        if (!whole) throw EditError("the kernels of a stage do not repeat: its layers are not to be seen", "balance them: layers without arguments");
        const Stage& from = stages[static_cast<size_t>(m_move->from)];
        if (m_move->count >= from.layers) throw EditError(fmt::format("stage {} has {} layers and must keep one", m_move->from, from.layers));
        const double moved = from.workNs * m_move->count / from.layers;
        wanted[static_cast<size_t>(m_move->from)] -= moved;
        wanted[static_cast<size_t>(m_move->to)] += moved;
    } else if (whole && !m_parts) {
        const Plan plan = balanced(stages);
        if (plan.workNs == work) throw EditError("moving a whole layer makes no stage lighter than the heaviest one is now", "layers:parts=yes moves parts of layers");
        wanted = plan.workNs;
        std::string layers;
        for (int count : plan.layers) layers += fmt::format("{}{}", layers.empty() ? "" : ", ", count);
        effect.assume(fmt::format("layers per stage: {}", layers));
    } else {
        std::fill(wanted.begin(), wanted.end(), std::accumulate(work.begin(), work.end(), 0.0) / static_cast<double>(work.size()));
        effect.assume(m_parts ? "work moves in parts of layers: the stages are taken to be even" : "no whole layers are to be seen: the stages are taken to be even");
    }
    for (size_t s = 0; s < stages.size(); ++s)
        if (wanted[s] != work[s]) scale(graph, parts, static_cast<int>(s), wanted[s] / work[s]);
}

std::unique_ptr<Edit> parseLayers(EditArguments& arguments) {
    const std::optional<int> from = arguments.whole("from"), to = arguments.whole("to"), count = arguments.whole("count", 1);
    const bool parts = arguments.word("parts", {"yes", "no"}, "no") == "yes";
    if (parts && (from || to || count)) arguments.refuse("parts balances all stages");
    if (!from && !to && (parts || !count)) return std::make_unique<MoveLayers>(std::nullopt, parts);
    if (!from || !to) arguments.refuse("both from and to are needed");
    return std::make_unique<MoveLayers>(MoveLayers::Move{*from, *to, count.value_or(1)});
}

}  // namespace rankscope::analyzer

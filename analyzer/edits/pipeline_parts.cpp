// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analyzer/edits/edit.h"
#include "analyzer/edits/pipeline.h"

namespace rankscope::edits {
namespace {

const char* const kOrder = "the order of sends and receives must be that of gpipe, 1f1b or interleaved 1f1b";

/// By host call: what it put on the device, arrivals without their transfers.
NumbersByTask launchedIn(const TaskGraph& graph) {
    std::vector<std::pair<TaskId, uint32_t>> launched;
    launched.reserve(graph.size());
    for (TaskId task = 0; task < graph.size(); ++task) {
        if (graph.info[task].kind == TaskKind::transfer) continue;
        TaskId call = kNoTask;
        for (const Edge& edge : graph.edgesOf(task, WaitKind::launch)) call = edge.from;
        if (call != kNoTask) launched.emplace_back(call, task);
    }
    return {graph.size(), launched};
}

/// By arrival: the messages between stages that its kernel sends or receives.
NumbersByTask messagesIn(const TaskGraph& graph, const Analysis& analysis) {
    std::vector<std::pair<TaskId, uint32_t>> messages;
    for (uint32_t i = 0; i < graph.exchanges.size(); ++i) {
        const Exchange& exchange = graph.exchanges[i];
        if (exchange.message() && exchange.members == 2 &&
            analysis.layout.role(exchange.communicatorId, store::Op::send) == facts::CommRole::pipeline)
            for (const ExchangeMember& member : graph.membersOf(exchange)) messages.emplace_back(member.arrival, i);
    }
    return {graph.size(), messages};
}

}  // namespace

PipelineParts::PipelineParts(const TaskGraph& graph, const Analysis& analysis)
    : m_graph(graph), m_computeLanes(computeLanes(graph)), m_launched(launchedIn(graph)) {
    const std::vector<facts::Pipeline>& pipelines = analysis.layout.pipelines;
    if (pipelines.empty())
        throw EditError("this job is no pipeline",
                        "micro-batches and schedules are for pipelines of at least two stages");
    const facts::Pipeline& first = pipelines.front();
    m_shape = {first.schedule, static_cast<int>(first.stages.size()), first.microBatches, first.virtualStages};
    if (const std::string why = impossible(m_shape); !why.empty())
        throw EditError("the schedule of the pipeline is not known: " + why, kOrder);
    for (size_t p = 0; p < pipelines.size(); ++p) {
        // A replica is left out as a whole, and with it its pipelines.
        if (analysis.replay.hasLeftOut(pipelines[p].stages)) continue;
        if (pipelines[p].stages.size() != first.stages.size() || pipelines[p].microBatches != first.microBatches ||
            pipelines[p].virtualStages != first.virtualStages)
            throw EditError("the pipelines of this job differ in stages or micro-batches");
        for (size_t s = 0; s < pipelines[p].stages.size(); ++s) {
            m_places.stages[pipelines[p].stages[s]] = static_cast<int>(s);
            m_places.pipelines[pipelines[p].stages[s]] = static_cast<int>(p);
            m_places.ranks[{static_cast<int>(p), static_cast<int>(s)}] = pipelines[p].stages[s];
        }
    }
    findSteps();
    findCalls(messagesIn(graph, analysis));
    keepStepsOfTheSchedule();
    learnKeys();
    for (auto& [who, runs] : m_runs) m_parts[who] = taken(who.first, std::move(runs));
    m_runs = {};
    m_forwardNs = m_backwardNs = {};
}

void PipelineParts::findSteps() {
    std::map<int, int> marks;  // ranks by step
    for (const StepMark& mark : m_graph.marks)
        if (!mark.closes) ++marks[mark.step];
    for (const auto& [step, ranks] : marks)
        if (ranks == static_cast<int>(m_places.stages.size())) m_steps.push_back(step);
    // The last step has only begun where nothing ends it: in a job that was changed before, and of which few steps are
    // played.
    const bool ended = std::ranges::any_of(m_graph.marks, &StepMark::closes);
    if (!ended && !m_steps.empty()) m_steps.pop_back();
    if (m_steps.empty()) throw EditError("the pipelines do not hold all ranks of the job");
    m_recordedSteps = m_steps.size();
}

void PipelineParts::findCalls(const NumbersByTask& messagesOf) {
    std::map<std::pair<int, int>, Calls> calls;  // by (rank, step)
    std::map<int, uint32_t> hostLane;
    std::map<int, int> stepOf;  // by rank: of its last call
    for (TaskId task = 0; task < m_graph.size(); ++task) {
        const TaskInfo& info = m_graph.info[task];
        if (!m_graph.onHost(task)) continue;
        const int rank = m_graph.rankOf(task);
        if (m_places.stages.count(rank) == 0) throw EditError(fmt::format("rank {} is in none of the pipelines", rank));
        // Steps that no range of the host names are those of the device: a call belongs to what it launched.
        int step = info.step;
        if (step < 0) {
            int& last = stepOf.try_emplace(rank, -1).first->second;
            for (TaskId launched : launchedBy(task)) last = std::max(last, m_graph.info[launched].step);
            step = last;
        }
        if (step < m_steps.front() || step > m_steps.back()) continue;
        const auto [lane, isNew] = hostLane.try_emplace(rank, info.lane);
        if (!isNew && lane->second != info.lane)
            throw EditError(fmt::format("rank {} launches from threads that work side by side", rank));
        calls[{rank, step}].push_back(task);
    }
    for (const auto& [who, ofStep] : calls) m_runs[who] = runsOf(who.first, ofStep, messagesOf);
}

std::string PipelineParts::whyNotOfTheSchedule(int rank, int step) const {
    // Where steps were told by the period of the collectives, a stage may have launched a whole one before it began.
    const auto found = m_runs.find({rank, step});
    if (found == m_runs.end()) return fmt::format("rank {} launches nothing in step {}", rank, step);
    const std::vector<PlannedRun>& planned = planOf(rank);
    const std::vector<Run>& runs = found->second;
    if (runs.size() != planned.size())
        return fmt::format("rank {} sends and receives {} times in step {}, {} with {} micro-batches does {} times",
                           rank, runs.size() - 1, step, m_shape.schedule, m_shape.microBatches, planned.size() - 1);
    for (size_t i = 0; i < planned.size(); ++i) {
        GroupMessages messages;
        for (const PipelineMessage& message : planned[i].messages) messages.insert({message.send, message.peerStage});
        if (messages != runs[i].group.messages)
            return fmt::format("rank {}: group {} of sends and receives is not that of {}", rank, i + 1,
                               m_shape.schedule);
    }
    return {};
}

std::vector<int> PipelineParts::stepsOfTheSchedule(std::string& why) const {
    std::set<int> seen;  // steps with calls, also those that some rank has no mark of
    for (const auto& [who, runs] : m_runs) seen.insert(who.second);
    std::vector<int> run, longest;
    for (int step : m_steps) {
        if (!run.empty() && seen.upper_bound(run.back()) != seen.lower_bound(step)) run.clear();  // one lies between
        std::string whyNot;
        for (auto stage = m_places.stages.begin(); stage != m_places.stages.end() && whyNot.empty(); ++stage)
            whyNot = whyNotOfTheSchedule(stage->first, step);
        if (why.empty()) why = whyNot;
        if (whyNot.empty())
            run.push_back(step);
        else
            run.clear();
        if (run.size() > longest.size()) longest = run;
    }
    return longest;
}

void PipelineParts::planStages() {
    m_plans.clear();
    for (int stage = 0; stage < m_shape.stages; ++stage) m_plans.push_back(planStage(m_shape, stage));
}

void PipelineParts::keepStepsOfTheSchedule() {
    std::string why;
    planStages();
    std::vector<int> steps = stepsOfTheSchedule(why);
    if (steps.empty() && m_shape.schedule == "interleaved") {
        m_shape.passByPass = true;
        planStages();
        steps = stepsOfTheSchedule(why);
    }
    if (steps.empty()) throw EditError(why, kOrder);
    m_steps = std::move(steps);
    std::erase_if(m_runs, [&](const auto& runs) {
        return runs.first.second < m_steps.front() || runs.first.second > m_steps.back();
    });
}

std::vector<PipelineParts::Run> PipelineParts::runsOf(int rank, const Calls& calls,
                                                      const NumbersByTask& messagesOf) const {
    std::vector<Run> runs(1);
    for (TaskId call : calls) {
        TaskId message = kNoTask;
        for (TaskId task : launchedBy(call))
            if (!messagesOf.of(task).empty()) message = task;
        if (message == kNoTask) {
            runs.back().calls.push_back(call);
            continue;
        }
        GroupCall& group = runs.back().group;
        group.call = call;
        group.arrival = message;
        for (uint32_t exchange : messagesOf.of(message)) {
            const auto members = m_graph.membersOf(m_graph.exchanges[exchange]);
            const bool send = members[0].rank == rank;
            group.transfer = (send ? members[0] : members[1]).transfer;
            group.messages.insert({send, m_places.stages.at((send ? members[1] : members[0]).rank)});
        }
        runs.emplace_back();
    }
    return runs;
}

void PipelineParts::learnKeys() {
    for (const auto& [who, runs] : m_runs) {
        const std::vector<PlannedRun>& planned = planOf(who.first);
        for (size_t i = 0; i < planned.size(); ++i) {
            // The last one holds the optimizer, too.
            if (planned[i].work.size() != 1 || i + 1 == planned.size()) continue;
            const bool forward = planned[i].work.front().part == StepPart::forward;
            KernelTimes& ns = forward ? m_forwardNs : m_backwardNs;
            for (TaskId call : runs[i].calls)
                forEachKernel(call, [&](TaskId kernel) {
                    if (keyOf(kernel) >= ns.size()) ns.resize(keyOf(kernel) + 1);
                    std::optional<double>& known = ns[keyOf(kernel)];
                    known = known.value_or(0) + static_cast<double>(m_graph.durationNs[kernel]);
                });
        }
    }
}

double PipelineParts::direction(TaskId call) const {
    double sum = 0;
    forEachKernel(call, [&](TaskId kernel) {
        const double ahead = timeIn(m_forwardNs, kernel).value_or(0), back = timeIn(m_backwardNs, kernel).value_or(0);
        if (ahead + back > 0) sum += static_cast<double>(m_graph.durationNs[kernel]) * (ahead - back) / (ahead + back);
    });
    return sum;
}

size_t PipelineParts::splitPoint(const Calls& calls, bool forwardFirst) const {
    double sum = 0, best = 0;
    size_t point = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
        sum += forwardFirst ? direction(calls[i]) : -direction(calls[i]);
        if (sum <= best) continue;
        best = sum;
        point = i + 1;
    }
    return point;
}

StageStep PipelineParts::taken(int rank, std::vector<Run> runs) const {
    const std::vector<PlannedRun>& planned = planOf(rank);
    StageStep parts;
    Calls &head = parts.passes[{StepPart::head}], &tail = parts.passes[{StepPart::tail}];
    const auto computes = [&](TaskId call, const KernelTimes& pass) {
        bool any = false;
        forEachKernel(call, [&](TaskId kernel) { any = any || timeIn(pass, kernel).has_value(); });
        return any;
    };
    for (size_t i = 0; i < planned.size(); ++i) {
        Calls calls = std::move(runs[i].calls);
        if (i == 0) {
            // Up to the first kernel of a forward pass.
            const auto work = planned[0].work.empty() ? calls.end() : std::ranges::find_if(calls, [&](TaskId call) {
                return computes(call, m_forwardNs);
            });
            head.assign(calls.begin(), work);
            calls.erase(calls.begin(), work);
        }
        if (i + 1 == planned.size()) {
            // Behind the last kernel of a backward pass.
            auto end = calls.end();
            if (planned[i].work.empty()) end = calls.begin();
            while (end != calls.begin() && !computes(*(end - 1), m_backwardNs)) --end;
            tail.assign(end, calls.end());
            calls.erase(end, calls.end());
        }
        const std::vector<Pass>& work = planned[i].work;
        if (work.size() == 2 && work[0].part != work[1].part) {
            const auto point =
                calls.begin() + static_cast<std::ptrdiff_t>(splitPoint(calls, work[0].part == StepPart::forward));
            parts.passes[work[0]].assign(calls.begin(), point);
            parts.passes[work[1]].assign(point, calls.end());
        } else if (work.size() == 1) {
            parts.passes[work[0]] = std::move(calls);
        } else if (work.size() > 1) {
            throw EditError(fmt::format("rank {}: {} passes in a row without a message", rank, work.size()), kOrder);
        } else if (!calls.empty()) {
            tail.insert(tail.begin(), calls.begin(), calls.end());  // between two messages, and of no pass
        }
        if (i + 1 < planned.size()) parts.groups.push_back(runs[i].group);
    }
    return parts;
}

uint32_t PipelineParts::computeLane(int rank) const {
    const auto lane = m_computeLanes.find(rank);
    return lane == m_computeLanes.end() ? kNoLane : lane->second;
}

std::vector<TaskId> PipelineParts::kernelsOf(const Calls& calls) const {
    std::vector<TaskId> kernels;
    for (TaskId call : calls) forEachKernel(call, [&](TaskId kernel) { kernels.push_back(kernel); });
    return kernels;
}

namespace {

/// Repeats of a sequence: `length` kernels each, from `first`.
struct Repeats {
    size_t first = 0;
    size_t length = 0;
    int count = 0;
};

/// The distance between two layers is the shortest at which nearly all repeats.
Repeats repeatsOf(const std::vector<uint32_t>& keys) {
    Repeats best;
    for (size_t length = 1; length <= keys.size() / 2; ++length) {
        // Longest stretch in which every kernel is that of `length` before.
        size_t begin = 0;
        for (size_t i = length; i <= keys.size(); ++i) {
            if (i < keys.size() && keys[i] == keys[i - length]) continue;
            const size_t stretch = i - begin;
            const int count = static_cast<int>(stretch / length);
            if (count >= 2 && stretch > static_cast<size_t>(best.count) * best.length) best = {begin, length, count};
            begin = i - length + 1;
        }
        if (best.count > 0 && static_cast<size_t>(best.count) * best.length * 10 >= keys.size() * 9) break;
    }
    return best;
}

}  // namespace

int PipelineParts::layersPerStage(int rank) const {
    std::vector<uint32_t> keys;
    for (int chunk = 0; chunk < m_shape.virtualStages; ++chunk)
        for (TaskId kernel : kernelsOf(step(rank, m_steps.front()).passes.at({StepPart::forward, chunk, 0})))
            keys.push_back(keyOf(kernel));
    return repeatsOf(keys).count;
}

std::vector<Calls> PipelineParts::cut(const Calls& calls, int parts) const {
    if (parts == 1) return {calls};
    std::vector<uint32_t> keys;
    std::vector<size_t> at;  // by kernel: its call
    for (size_t i = 0; i < calls.size(); ++i)
        for (TaskId kernel : kernelsOf({calls[i]})) {
            keys.push_back(keyOf(kernel));
            at.push_back(i);
        }
    const Repeats layers = repeatsOf(keys);
    if (layers.count == 0 || layers.count % parts != 0)
        throw EditError(layers.count == 0 ? "the kernels of a stage do not repeat: its layers are not to be seen"
                                          : fmt::format("{} layers per stage cannot be shared among {} virtual stages",
                                                        layers.count, parts));
    std::vector<Calls> result;
    size_t begin = 0;
    for (int part = 1; part <= parts; ++part) {
        const size_t end = part == parts
                               ? calls.size()
                               : at[layers.first + static_cast<size_t>(part * (layers.count / parts)) * layers.length];
        result.emplace_back(calls.begin() + static_cast<std::ptrdiff_t>(begin),
                            calls.begin() + static_cast<std::ptrdiff_t>(end));
        begin = end;
    }
    return result;
}

}  // namespace rankscope::edits

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "analyzer/edits/edit.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/group_costs.h"
#include "analyzer/edits/pipeline.h"
#include "analyzer/edits/trial_graph.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/text/lists.h"

namespace rankscope::edits {
namespace {

// Of what the optimizer takes: an addition reads and writes three values of a weight, Adam by one kernel for each of
// its operations some forty. What takes less is none.
constexpr double kFewestAdditions = 0.05;
constexpr double kLongestLeadNs = 1e9;  // a lead has 32 bits: 4.29 s, with what it is already

/// A pass of a step: which calls of which ranks belong together.
using Instance = std::pair<int, Pass>;

/// Calls that begin or end a step.
using StepCalls = std::map<TaskId, StepMark>;

/// A group of the new schedule.
struct PlayedGroup {
    int rank = 0;
    TaskId transfer = kNoTask;
    const GroupMessages* messages = nullptr;  // groups of a rank that are alike share them
    int64_t besideSumsNs = 0;
};

class Rebuild {
  public:
    /// `gradients`: communicators whose collectives are sums of gradients.
    Rebuild(const TrialGraph& of, PresentPipeline present, const PipelineShape& shape, double size,
            const std::vector<int>& steps, std::set<int64_t> gradients, double alphaNs, EditEffect& effect)
        : m_graph(of.graph()),
          m_analysis(of.analysis()),
          m_recorded(std::move(present.schedule)),
          m_parts(std::move(present.parts)),
          m_places(m_parts->places()),
          m_shape(shape),
          m_size(size),
          m_steps(steps),
          m_clone(m_graph.size(), {kNoTask, 0}),
          m_exchangeOf(m_graph.size(), kNoTask),
          m_gradients(std::move(gradients)),
          m_alphaNs(alphaNs),
          m_effect(effect) {
        for (const Lane& lane : m_graph.lanes) m_draft.addLane(lane);
        for (const facts::KernelKey& key : m_graph.kernelKeys) m_draft.addKernelKey(key);
        for (uint32_t i = 0; i < m_graph.exchanges.size(); ++i) {
            if (m_graph.exchanges[i].join == kNoTask) continue;
            for (const ExchangeMember& member : m_graph.membersOf(m_graph.exchanges[i]))
                m_exchangeOf[member.arrival] = i;
        }
        for (const StepMark& mark : m_graph.marks)
            for (const Edge& edge : m_graph.edgesOf(mark.task)) {
                if (m_graph.onHost(edge.from)) m_marks[mark.rank].emplace(edge.from, mark);
            }
        m_markedByDevice = m_marks.empty();
        for (int stage = 0; stage < shape.stages; ++stage) m_plans.push_back(planStage(shape, stage));
    }

    TaskGraph run() {
        reserve();
        playRanks();
        joinCollectives();
        joinMessages();
        std::vector<TaskId> numbers;
        TaskGraph graph = sealed(std::move(m_draft), "in this order work would wait for itself", &numbers);
        shareLinks(graph, numbers);
        return graph;
    }

  private:
    void playRanks() {
        const CollectiveTimes collectives(m_graph, *m_recorded);
        for (const auto& [rank, stage] : m_places.stages) {
            m_rank = rank;
            m_costs = groupCosts(m_graph, *m_recorded, collectives, *m_parts, rank, m_alphaNs);
            m_deviceLanes.clear();
            for (uint32_t lane = 0; lane < m_graph.lanes.size(); ++lane)
                if (m_graph.lanes[lane].rank == rank && !m_graph.lanes[lane].host) m_deviceLanes.push_back(lane);
            m_ownMarks = &m_marks[rank];
            m_computeLane = m_parts->computeLane(rank);
            if (m_size != 1) m_sizes = sizesOf(rank);
            for (int step : m_steps) playStep(step, stage);
            endSteps();
        }
        // The graph is made without what was read to draft it, but for what others keep of it.
        m_recorded.reset();
        m_parts.reset();
        std::exchange(m_clone, {});
        std::exchange(m_exchangeOf, {});
    }

    /// Room for what passes repeat: vectors that grow into it would take up to twice as much.
    void reserve() {
        const double passes = static_cast<double>(m_steps.size()) * m_shape.microBatches;
        const double before = static_cast<double>(m_parts->steps().size()) * m_parts->shape().microBatches;
        const auto grown = [&](size_t count) {
            return static_cast<size_t>(static_cast<double>(count) * passes / before);
        };
        m_draft.reserve(grown(m_graph.size()), grown(m_graph.edges.size()));
    }

    /// Which messages travel beside sums of gradients is known when the new order was played.
    void shareLinks(TaskGraph& graph, const std::vector<TaskId>& numbers) const {
        const Schedule played = simulate(graph);
        const CollectiveTimes collectives(graph, played);
        for (const PlayedGroup& group : m_groups) {
            const TaskId transfer = numbers[group.transfer];
            if (besideSums(collectives, played, m_places, group.rank, transfer, *group.messages))
                graph.durationNs[transfer] = group.besideSumsNs;
        }
    }

    struct Message {
        ExchangeMember sender, receiver;
    };
    struct Joined {
        uint32_t exchange = 0;  // of the graph it is modelled on
        std::vector<ExchangeMember> members;
    };

    /// What a pass of the new schedule is made of: calls of the recorded step `from`.
    struct Source {
        Calls calls;
        bool finishes = true;  // its sums of gradients belong to it
        uint32_t leadNs = 0;   // of its first call that puts something on the device, at least
    };

    /// The last micro-batch's backward pass also sends the gradients: it stays the last.
    Source source(const StageStep& step, const Pass& pass) const {
        const auto [part, chunk, micro] = pass;
        const PipelineShape& before = m_parts->shape();
        const bool forward = part == StepPart::forward, last = micro + 1 == m_shape.microBatches;
        int from = micro % before.microBatches;
        if (!forward) from = last ? before.microBatches - 1 : backwardLike(micro);
        const bool finishes = forward || last || from + 1 < before.microBatches;
        if (m_shape.virtualStages == before.virtualStages) return {step.passes.at({part, chunk, from}), finishes};
        Calls whole;
        for (int c = 0; c < before.virtualStages; ++c) {
            const Calls& calls = step.passes.at({part, forward ? c : before.virtualStages - 1 - c, from});
            whole.insert(whole.end(), calls.begin(), calls.end());
        }
        const int piece = forward ? chunk : m_shape.virtualStages - 1 - chunk;
        Source result{m_parts->cut(whole, m_shape.virtualStages)[static_cast<size_t>(piece)], finishes};
        if (piece > 0) beginAs(whole, result);
        return result;
    }

    /// What the host does in front of a pass it does in front of each of its pieces: it waits for the messages, and
    /// calls the model.
    void beginAs(const Calls& whole, Source& piece) const {
        const auto first = std::ranges::find_if(whole, [&](TaskId call) { return !m_parts->launchedBy(call).empty(); });
        if (first == whole.end()) return;
        piece.calls.insert(piece.calls.begin(), whole.begin(), first);
        piece.leadNs = m_graph.leadNs[*first];
    }

    /// Of those before the last one: the first adds its gradients to no others, and each behind it does.
    int backwardLike(int micro) const {
        const int before = m_parts->shape().microBatches;
        if (micro == 0 && before > 1) return 0;
        return before > 2 ? 1 + (micro - 1) % (before - 2) : before - 1;
    }

    /// How much of a rank's kernels is as long in smaller micro-batches, and what one takes that does nothing.
    struct Sizes {
        std::map<uint32_t, double> added;  // by kernel key: share of its time in backward passes behind the first
        int64_t emptyNs = 0;
        int64_t mayAddNs = 0;  // what the additions of a pass may take where they are not to be seen
    };

    Sizes sizesOf(int rank) const {
        std::map<uint32_t, double> first, others, ns;  // by kernel key: how many, and what all of `others` take
        double firsts = 0, passes = 0, tailNs = 0;
        std::vector<TaskId> onComputeLane;
        for (int step : m_parts->steps())
            for (const auto& [pass, calls] : m_parts->step(rank, step).passes) {
                const std::vector<TaskId> kernels = m_parts->kernelsOf(calls);
                std::ranges::copy_if(kernels, std::back_inserter(onComputeLane),
                                     [&](TaskId kernel) { return m_graph.info[kernel].lane == m_computeLane; });
                const bool backward = pass.part == StepPart::backward;
                if (!backward && pass.part != StepPart::tail) continue;
                (pass.micro == 0 ? firsts : passes) += backward ? 1 : 0;
                for (TaskId kernel : kernels) {
                    const uint32_t key = m_graph.info[kernel].detail;
                    const auto kernelNs = static_cast<double>(m_graph.durationNs[kernel]);
                    if (backward) ++(pass.micro == 0 ? first : others)[key];
                    (backward ? ns[key] : tailNs) += backward && pass.micro == 0 ? 0 : kernelNs;
                }
            }
        Sizes sizes;
        sizes.emptyNs = emptyKernelNs(m_graph, onComputeLane);
        double addedNs = 0;
        for (const auto& [key, count] : others) {
            const double each = count / passes;
            const double more = firsts > 0 ? each - text::valueAt(first, key) / firsts : 0;
            if (more <= 0) continue;
            sizes.added[key] = more / each;
            addedNs += ns[key] / passes * more / each;
        }
        addedNs *= m_parts->shape().virtualStages;
        const double mostNs = tailNs / static_cast<double>(m_parts->steps().size());
        if (addedNs < kFewestAdditions * mostNs)
            sizes.mayAddNs = std::llround((mostNs - addedNs) / m_shape.virtualStages);
        return sizes;
    }

    /// As many bytes for a micro-batch of any size.
    bool ofParameters(const Exchange& exchange) const {
        return growsWithReplicas(m_analysis.layout.role(exchange.communicatorId, exchange.op));
    }

    bool inPass() const {
        const StepPart part = m_instance.second.part;
        return part == StepPart::forward || part == StepPart::backward;
    }

    /// What a task of a pass takes in a micro-batch of the new size.
    int64_t sizedNs(TaskId task) const {
        const int64_t ns = m_graph.durationNs[task];
        const TaskInfo& info = m_graph.info[task];
        if (m_size == 1 || !inPass()) return ns;
        if (info.kind == TaskKind::copy || info.kind == TaskKind::set) return scaledNs(ns, m_size);
        if (info.kind != TaskKind::kernel) return ns;
        const bool adds = m_instance.second.part == StepPart::backward && m_instance.second.micro > 0;
        const double stays = adds ? text::valueAt(m_sizes.added, info.detail) : 0;
        return std::max(std::min(ns, m_sizes.emptyNs), scaledNs(ns, stays + (1 - stays) * m_size));
    }

    /// Of a transfer, with the bytes of the new size.
    int64_t sizedNs(int64_t ns, double startUpNs) const {
        const double fixed = std::clamp(startUpNs, 0.0, static_cast<double>(ns));
        return std::llround(fixed + (static_cast<double>(ns) - fixed) * m_size);
    }

    void playStep(int step, int stage) {
        const StageStep& parts = m_parts->step(m_rank, step);
        m_received.clear();
        if (m_markedByDevice)
            if (const StepMark* mark = recordedMark(step, false)) playMark(*mark, kNoTask);
        constexpr Pass kHead{StepPart::head}, kTail{StepPart::tail};
        play({step, kHead}, {parts.passes.at(kHead), true});
        for (const PlannedRun& run : m_plans[static_cast<size_t>(stage)]) {
            for (const Pass& pass : run.work) {
                if (m_shape.passByPass) m_awaited = inputOf(pass, stage);
                play({step, pass}, source(parts, pass));
            }
            if (!run.messages.empty()) exchange(run, step);
        }
        play({step, kTail}, {parts.passes.at(kTail), true});
        readBackMore(parts.passes.at(kTail));
    }

    /// One that the host waits long for has what others found there already: the typical one tells what one more costs.
    void readBackMore(const Calls& tail) {
        const int more = m_shape.microBatches - m_parts->shape().microBatches;
        std::vector<double> apartNs;
        TaskId last = kNoTask;
        for (TaskId call : tail) {
            if (m_graph.info[call].kind != TaskKind::blockingCall) continue;
            if (last != kNoTask)
                apartNs.push_back(static_cast<double>(m_recorded->endNs[call] - m_recorded->endNs[last]));
            last = call;
        }
        const auto each = (apartNs.size() + 1) / static_cast<size_t>(m_parts->shape().microBatches);
        if (more <= 0 || last == kNoTask || each == 0) return;
        m_effect.hostMaySlow = true;
        m_effect.assume(
            "what the host reads back behind the last backward pass is not more with more micro-batches; at worst it "
            "reads something of each");
        if (m_effect.outlook != Outlook::dear) return;
        const double ns = facts::median(std::move(apartNs)) * static_cast<double>(each) * more;
        m_draft.leadNs(m_draft.last(m_graph.info[last].lane)) += static_cast<uint32_t>(std::min(ns, kLongestLeadNs));
    }

    const StepMark* recordedMark(int step, bool closes) const {
        const auto mark = std::ranges::find_if(
            m_graph.marks, [&](const StepMark& m) { return m.rank == m_rank && m.step == step && m.closes == closes; });
        return mark == m_graph.marks.end() ? nullptr : &*mark;
    }

    /// Of a step that is not played it is told when it would begin: that ends the one before it.
    void endSteps() {
        if (m_markedByDevice) {
            const StepMark* mark = recordedMark(m_steps.back() + 1, false);
            if (mark == nullptr) mark = recordedMark(m_steps.back(), true);
            if (mark != nullptr) playMark(*mark, kNoTask);
            return;
        }
        for (const auto& [call, mark] : *m_ownMarks) {
            if (mark.closes || mark.step != m_steps.back() + 1) continue;
            play({mark.step, Pass{StepPart::head}}, {{call}, true});
            return;
        }
    }

    /// `call`: the host's that begins or ends the step, as played; kNoTask where the device alone tells.
    void playMark(const StepMark& mark, TaskId call) {
        const TaskId task = m_draft.addTask(m_graph.info[mark.task], 0);
        if (call != kNoTask) m_draft.addEdge(task, call, WaitKind::mark);
        for (uint32_t lane : m_deviceLanes)
            if (m_draft.last(lane) != kNoTask) m_draft.addEdge(task, m_draft.last(lane), WaitKind::mark);
        m_draft.addMark({mark.rank, mark.step, mark.closes, task});
    }

    /// What a pass computes on, where its group brought it.
    TaskId inputOf(const Pass& pass, int stage) const {
        const bool forward = pass.part == StepPart::forward;
        const int place = pass.chunk * m_shape.stages + stage + (forward ? -1 : 1);
        const auto input = m_received.find({forward, pass.micro, place});
        return input == m_received.end() ? kNoTask : input->second;
    }

    void play(const Instance& instance, const Source& source) {
        ++m_played;
        m_instance = instance;
        uint32_t leadNs = source.leadNs;
        for (TaskId call : source.calls) {
            if (!source.finishes && sendsGradients(call)) continue;
            const TaskId played = playCall(call);
            if (m_parts->launchedBy(call).empty()) continue;
            m_draft.leadNs(played) = std::max(m_draft.leadNs(played), std::exchange(leadNs, 0U));
        }
        if (m_size == 1 || instance.second.part != StepPart::backward || m_sizes.mayAddNs == 0) return;
        m_effect.open = true;
        m_effect.assume(
            "what adds up the gradients of micro-batches is not to be seen; at worst it takes as long for each as what "
            "follows the last backward pass of a step");
        const TaskId last = m_draft.last(m_computeLane);
        if (m_effect.outlook == Outlook::dear && last != kNoTask)
            m_draft.durationNs(last) += scaledNs(m_sizes.mayAddNs, std::max(0.0, 1 - m_size));
    }

    /// A recording of one micro-batch has gradients sent in its only backward pass: with more they leave in the last
    /// one.
    bool sendsGradients(TaskId call) const {
        return std::ranges::any_of(m_parts->launchedBy(call), [&](TaskId task) {
            const uint32_t exchange = m_exchangeOf[task];
            return exchange != kNoTask && m_gradients.count(m_graph.exchanges[exchange].communicatorId) != 0;
        });
    }

    TaskId playCall(TaskId call) {
        const TaskId played = clone(call, m_graph.info[call]);
        for (TaskId task : m_parts->launchedBy(call)) {
            const TaskId copy = clone(task, m_graph.info[task]);
            if (m_graph.info[task].lane == m_computeLane && m_awaited != kNoTask) {
                m_draft.addEdge(copy, m_awaited, WaitKind::event, m_costs.eventDelayNs);
                m_awaited = kNoTask;
            }
            if (m_graph.info[task].kind == TaskKind::arrival) playTransfer(task, copy);
        }
        if (const auto mark = m_ownMarks->find(call); mark != m_ownMarks->end()) playMark(mark->second, played);
        return played;
    }

    void playTransfer(TaskId arrival, TaskId copy) {
        const uint32_t exchange = m_exchangeOf[arrival];
        TaskId transfer = kNoTask;
        if (exchange != kNoTask)
            for (const ExchangeMember& member : m_graph.membersOf(m_graph.exchanges[exchange]))
                if (member.arrival == arrival) transfer = member.transfer;
        if (transfer == kNoTask)
            throw EditError(fmt::format("rank {}: a collective of a pass has no partners", m_rank));
        const TaskId end = clone(transfer, m_graph.info[transfer]);
        const Exchange& collective = m_graph.exchanges[exchange];
        if (m_size != 1 && inPass() && !ofParameters(collective))
            m_draft.durationNs(end) = sizedNs(m_graph.durationNs[transfer], startUpNs(m_graph, m_analysis, collective));
        Joined& joined = m_joined[{exchange, m_instance}];
        joined.exchange = exchange;
        joined.members.push_back({m_rank, copy, end});
    }

    TaskId clone(TaskId task, const TaskInfo& info) {
        const TaskId copy = m_draft.addTask(info, sizedNs(task), m_graph.leadNs[task]);
        for (const Edge& edge : m_graph.edgesOf(task)) {
            if (edge.kind == WaitKind::peer || edge.kind == WaitKind::mark) continue;
            if (edge.kind == WaitKind::blocking && info.kind == TaskKind::host)
                continue;  // a full launch queue: the host is far ahead
            TaskId from = kNoTask;
            bool afterStart = edge.afterStart;
            if (const auto& [known, played] = m_clone[edge.from]; known != kNoTask && played == m_played) {
                from = known;
            } else {
                // What its stream was given last takes the place of what it had been given then.
                const uint32_t lane = m_graph.info[edge.from].lane;
                if (lane == kNoLane || lane == info.lane) continue;
                const StepPart part = m_instance.second.part;
                const bool pass = part == StepPart::forward || part == StepPart::backward;
                // Received data: waited for behind the group that brings them. A host that waits for the group, too
                // (Megatron-LM's synchronisation behind its messages), launches nothing before.
                if (pass && lane == m_costs.arrival.lane && edge.kind != WaitKind::blocking) continue;
                from = m_draft.last(lane);
                afterStart = false;
            }
            if (from != kNoTask && from != copy) m_draft.addEdge(copy, from, edge.kind, edge.delayNs, afterStart);
        }
        m_clone[task] = {copy, m_played};
        return copy;
    }

    void exchange(const PlannedRun& run, int step) {
        GroupMessages messages;
        for (const PipelineMessage& message : run.messages) messages.insert({message.send, message.peerStage});
        const auto inStep = [step](TaskInfo info) {
            info.step = step;
            return info;
        };
        const auto [price, isNew] = m_prices[m_rank].try_emplace(std::move(messages));
        const GroupMessages& known = price->first;
        if (isNew)
            price->second = {sizedNs(m_costs.times.aloneNs(known), m_alphaNs),
                             sizedNs(m_costs.times.besideSumsNs(known), m_alphaNs)};
        const auto [aloneNs, besideSumsNs] = price->second;
        const TaskId call = m_draft.addTask(inStep(m_costs.call), m_costs.callNs, m_costs.leadNs);
        const TaskId arrival = m_draft.addTask(inStep(m_costs.arrival), 0, m_costs.gapNs);
        const TaskId transfer = m_draft.addTask(inStep(m_costs.transfer), aloneNs);
        m_groups.push_back({m_rank, transfer, &known, besideSumsNs});
        m_draft.addEdge(arrival, call, WaitKind::launch, m_costs.launchDelayNs, m_costs.afterStart);
        m_costs.awaited.insert(m_computeLane);
        for (uint32_t lane : m_costs.awaited)
            if (lane != kNoLane && lane != m_costs.arrival.lane && m_draft.last(lane) != kNoTask)
                m_draft.addEdge(arrival, m_draft.last(lane), WaitKind::event, m_costs.eventDelayNs);
        if (run.receives() && !m_shape.passByPass) m_awaited = transfer;
        for (const PipelineMessage& message : run.messages) {
            if (!message.send) m_received[{message.activation, message.micro, message.place}] = transfer;
            Message& pair =
                m_messages[{m_places.pipelines.at(m_rank), step, message.activation, message.micro, message.place}];
            (message.send ? pair.sender : pair.receiver) = {m_rank, arrival, transfer};
        }
    }

    void joinCollectives() {
        for (const auto& [key, joined] : m_joined) {
            const Exchange& model = m_graph.exchanges[joined.exchange];
            if (joined.members.size() != model.members)
                throw EditError(
                    fmt::format("the ranks of communicator {} do not agree in what a pass does", model.communicatorId));
            TaskInfo info = m_graph.info[model.join];
            info.step = key.second.first;
            Exchange exchange = model;
            exchange.step = info.step;
            const StepPart part = key.second.second.part;
            if ((part == StepPart::forward || part == StepPart::backward) && !ofParameters(model))
                exchange.bytes = scaledNs(exchange.bytes, m_size);
            joinCollective(m_draft, info, exchange, joined.members);
        }
        m_joined = {};  // the graph is made without it: with many micro-batches it takes as much memory
    }

    void joinMessages() {
        const Exchange* model = nullptr;
        for (const Exchange& exchange : m_graph.exchanges)
            if (exchange.message()) model = &exchange;
        for (const auto& [key, pair] : m_messages) {
            if (pair.sender.arrival == kNoTask || pair.receiver.arrival == kNoTask)
                throw EditError("a message of the new schedule has one side only");
            Exchange exchange = *model;
            exchange.step = std::get<1>(key);
            exchange.bytes = scaledNs(exchange.bytes, m_size);
            const std::array<ExchangeMember, 2> members{pair.sender, pair.receiver};
            const uint32_t number = m_draft.addExchange(exchange, members);
            for (const ExchangeMember& member : members)
                m_draft.info(member.arrival).detail = m_draft.info(member.transfer).detail = number;
            m_draft.addEdge(pair.sender.transfer, pair.receiver.arrival, WaitKind::peer);
            m_draft.addEdge(pair.receiver.transfer, pair.sender.arrival, WaitKind::peer);
        }
        m_messages = {};  // as m_joined
    }

    const TaskGraph& m_graph;
    const Analysis& m_analysis;
    // Of m_graph; none once the ranks are played.
    std::shared_ptr<const Schedule> m_recorded;
    std::shared_ptr<const PipelineParts> m_parts;
    PipelinePlaces m_places;
    PipelineShape m_shape;
    std::vector<std::vector<PlannedRun>> m_plans;  // by stage
    double m_size;                                 // of a micro-batch, as a multiple of the recorded ones'
    Sizes m_sizes;                                 // of the rank
    const std::vector<int>& m_steps;               // those that are played
    GraphDraft m_draft;
    int m_rank = 0;
    GroupCosts m_costs;
    uint32_t m_computeLane = kNoLane;
    std::vector<uint32_t> m_deviceLanes;
    Instance m_instance;
    uint32_t m_played = 0;                                    // passes so far
    TaskId m_awaited = kNoTask;                               // received: the next compute waits for it
    std::map<std::tuple<bool, int, int>, TaskId> m_received;  // by activation, micro-batch, sender's place: in the step
    std::vector<std::pair<TaskId, uint32_t>> m_clone;         // by task of the graph: its last copy, and in which pass
    std::vector<uint32_t> m_exchangeOf;                       // by arrival: its collective
    std::map<int, StepCalls> m_marks;                         // by rank
    const StepCalls* m_ownMarks = nullptr;                    // of the rank
    bool m_markedByDevice = false;                            // no call does
    std::set<int64_t> m_gradients;
    double m_alphaNs;  // start-up of a message
    EditEffect& m_effect;
    std::map<int, std::map<GroupMessages, std::pair<int64_t, int64_t>>>
        m_prices;  // by rank, of its groups: alone, beside sums of gradients
    std::vector<PlayedGroup> m_groups;
    std::map<std::pair<uint32_t, Instance>, Joined> m_joined;
    std::map<std::tuple<int, int, bool, int, int>, Message>
        m_messages;  // pipeline, step, activation, micro-batch, sender's place
};

}  // namespace

TaskGraph rebuildPipeline(const TrialGraph& of, PresentPipeline present, const PipelineShape& shape, double size,
                          const std::vector<int>& steps, EditEffect& effect) {
    const Analysis& analysis = of.analysis();
    std::set<int64_t> gradients;
    for (const auto& [id, role] : analysis.layout.roles)
        if (role == facts::CommRole::gradients) gradients.insert(id);
    double alphaNs = 0;
    for (const Exchange& exchange : of.graph().exchanges)
        if (const auto* communicator = analysis.facts.findCommunicator(exchange.communicatorId);
            exchange.message() && communicator != nullptr)
            alphaNs = std::max(alphaNs, analysis.peaks.alphaPerHop(*communicator));
    return Rebuild(of, std::move(present), shape, size, steps, std::move(gradients), alphaNs, effect).run();
}

}  // namespace rankscope::edits

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "analyzer/edits/edit.h"
#include "analyzer/edits/graph_changes.h"
#include "analyzer/edits/group_costs.h"
#include "analyzer/edits/pipeline.h"

namespace rankscope::edits {
namespace {

enum class StepPart { head, forward, backward, tail };

/// A pass of a step: which calls of which ranks belong together.
struct Instance {
    int step = 0;
    StepPart part = StepPart::head;
    int chunk = 0;
    int micro = 0;

    auto operator<=>(const Instance&) const = default;
};

/// A group of the new schedule.
struct PlayedGroup {
    int rank = 0;
    replay::TaskId transfer = replay::kNoTask;
    const GroupMessages* messages = nullptr;  // groups of a rank that are alike share them
    int64_t besideSumsNs = 0;
};

class Rebuild {
  public:
    /// `gradients`: communicators whose collectives are sums of gradients.
    Rebuild(const replay::TaskGraph& graph, const PipelineParts& parts, const PipelineShape& shape,
            std::set<int64_t> gradients, double alphaNs)
        : m_graph(graph),
          m_parts(parts),
          m_shape(shape),
          m_clone(graph.size(), {replay::kNoTask, 0}),
          m_exchangeOf(graph.size(), replay::kNoTask),
          m_gradients(std::move(gradients)),
          m_alphaNs(alphaNs) {
        for (const replay::Lane& lane : graph.lanes) m_draft.addLane(lane);
        for (const facts::KernelKey& key : graph.kernelKeys) m_draft.addKernelKey(key);
        for (uint32_t i = 0; i < graph.exchanges.size(); ++i) {
            if (graph.exchanges[i].join == replay::kNoTask) continue;
            for (const replay::ExchangeMember& member : graph.membersOf(graph.exchanges[i]))
                m_exchangeOf[member.arrival] = i;
        }
        for (const replay::StepMark& mark : graph.marks)
            for (const replay::Edge& edge : graph.edgesOf(mark.task)) {
                const uint32_t lane = graph.info[edge.from].lane;
                if (lane != replay::kNoLane && graph.lanes[lane].host) m_marks.emplace(edge.from, mark);
            }
    }

    replay::TaskGraph run() {
        const replay::Schedule recorded = replay::simulate(m_graph);
        const CollectiveTimes collectives(m_graph, recorded);
        for (const auto& [rank, stage] : m_parts.stages()) {
            m_rank = rank;
            m_costs = groupCosts(m_graph, recorded, collectives, m_parts, rank, m_alphaNs);
            m_deviceLanes.clear();
            for (uint32_t lane = 0; lane < m_graph.lanes.size(); ++lane)
                if (m_graph.lanes[lane].rank == rank && !m_graph.lanes[lane].host) m_deviceLanes.push_back(lane);
            m_computeLane = m_parts.index().compute(rank).lane;
            for (int step : m_parts.steps()) playStep(step, stage);
        }
        joinCollectives();
        joinMessages();
        std::vector<replay::TaskId> numbers;
        std::optional<replay::TaskGraph> graph = std::move(m_draft).seal(&numbers);
        if (!graph) throw EditError("in this order work would wait for itself");
        shareLinks(*graph, numbers);
        return std::move(*graph);
    }

  private:
    /// Which messages travel beside sums of gradients is known when the new order was played.
    void shareLinks(replay::TaskGraph& graph, const std::vector<replay::TaskId>& numbers) const {
        const replay::Schedule played = replay::simulate(graph);
        const CollectiveTimes collectives(graph, played);
        for (const PlayedGroup& group : m_groups) {
            const replay::TaskId transfer = numbers[group.transfer];
            if (besideSums(collectives, played, m_parts, group.rank, transfer, *group.messages))
                graph.durationNs[transfer] = group.besideSumsNs;
        }
    }

    struct Message {
        replay::ExchangeMember sender, receiver;
    };
    struct Joined {
        uint32_t exchange = 0;  // of the graph it is modelled on
        std::vector<replay::ExchangeMember> members;
    };

    /// What a pass of the new schedule is made of: calls of the recorded step `from`.
    struct Source {
        Calls calls;
        bool finishes = true;  // its sums of gradients belong to it
    };

    /// The last micro-batch's backward pass also sends the gradients: it stays the last.
    Source source(const StageStep& step, bool forward, int chunk, int micro) const {
        const PipelineShape& before = m_parts.shape();
        const bool last = micro + 1 == m_shape.microBatches;
        int from = micro % before.microBatches;
        if (!forward) from = last ? before.microBatches - 1 : micro % std::max(1, before.microBatches - 1);
        const auto& passes = forward ? step.forward : step.backward;
        const bool finishes = forward || last || before.microBatches > 1;
        if (m_shape.virtualStages == before.virtualStages) return {passes.at({chunk, from}), finishes};
        Calls whole;
        for (int c = 0; c < before.virtualStages; ++c) {
            const Calls& part = passes.at({forward ? c : before.virtualStages - 1 - c, from});
            whole.insert(whole.end(), part.begin(), part.end());
        }
        const std::vector<Calls> pieces = m_parts.cut(whole, m_shape.virtualStages);
        return {pieces[static_cast<size_t>(forward ? chunk : m_shape.virtualStages - 1 - chunk)], finishes};
    }

    void playStep(int step, int stage) {
        const StageStep& parts = m_parts.step(m_rank, step);
        play({step, StepPart::head, 0, 0}, {parts.head, true});
        for (const PipelineAction& action : planStage(m_shape, stage)) {
            if (action.kind == PipelineAction::Kind::transfer) {
                exchange(action, step);
                continue;
            }
            const bool forward = action.kind == PipelineAction::Kind::forward;
            play({step, forward ? StepPart::forward : StepPart::backward, action.chunk, action.micro},
                 source(parts, forward, action.chunk, action.micro));
        }
        play({step, StepPart::tail, 0, 0}, {parts.tail, true});
    }

    void play(const Instance& instance, const Source& source) {
        ++m_played;
        m_instance = instance;
        for (replay::TaskId call : source.calls) {
            if (!source.finishes && sendsGradients(call)) continue;
            playCall(call);
        }
    }

    /// A recording of one micro-batch has gradients sent in its only backward pass: with more they leave in the last
    /// one.
    bool sendsGradients(replay::TaskId call) const {
        return std::ranges::any_of(m_parts.launchedBy(call), [&](replay::TaskId task) {
            const uint32_t exchange = m_exchangeOf[task];
            return exchange != replay::kNoTask && m_gradients.count(m_graph.exchanges[exchange].communicatorId) != 0;
        });
    }

    void playCall(replay::TaskId call) {
        const replay::TaskId played = clone(call, m_graph.info[call]);
        for (replay::TaskId task : m_parts.launchedBy(call)) {
            const replay::TaskId copy = clone(task, m_graph.info[task]);
            if (m_graph.info[task].lane == m_computeLane && m_awaited != replay::kNoTask) {
                m_draft.addEdge(copy, m_awaited, replay::WaitKind::event, m_costs.eventDelayNs);
                m_awaited = replay::kNoTask;
            }
            if (m_graph.info[task].kind == replay::TaskKind::arrival) playTransfer(task, copy);
        }
        if (const auto mark = m_marks.find(call); mark != m_marks.end()) {
            replay::TaskInfo info = m_graph.info[mark->second.task];
            const replay::TaskId task = m_draft.addTask(info, 0);
            m_draft.addEdge(task, played, replay::WaitKind::mark);
            for (uint32_t lane : m_deviceLanes)
                if (m_draft.last(lane) != replay::kNoTask)
                    m_draft.addEdge(task, m_draft.last(lane), replay::WaitKind::mark);
            m_draft.addMark({mark->second.rank, mark->second.step, mark->second.closes, task});
        }
    }

    void playTransfer(replay::TaskId arrival, replay::TaskId copy) {
        const uint32_t exchange = m_exchangeOf[arrival];
        replay::TaskId transfer = replay::kNoTask;
        if (exchange != replay::kNoTask)
            for (const replay::ExchangeMember& member : m_graph.membersOf(m_graph.exchanges[exchange]))
                if (member.arrival == arrival) transfer = member.transfer;
        if (transfer == replay::kNoTask)
            throw EditError(fmt::format("rank {}: a collective of a pass has no partners", m_rank));
        const replay::TaskId end = clone(transfer, m_graph.info[transfer]);
        Joined& joined = m_joined[{exchange, m_instance}];
        joined.exchange = exchange;
        joined.members.push_back({m_rank, copy, end});
    }

    replay::TaskId clone(replay::TaskId task, const replay::TaskInfo& info) {
        const replay::TaskId copy = m_draft.addTask(info, m_graph.durationNs[task], m_graph.leadNs[task]);
        for (const replay::Edge& edge : m_graph.edgesOf(task)) {
            const auto kind = static_cast<replay::WaitKind>(edge.kind);
            if (kind == replay::WaitKind::peer || kind == replay::WaitKind::mark) continue;
            if (kind == replay::WaitKind::blocking && info.kind == replay::TaskKind::host)
                continue;  // a full launch queue: the host is far ahead
            replay::TaskId from = replay::kNoTask;
            bool afterStart = edge.afterStart;
            if (const auto& [known, played] = m_clone[edge.from]; known != replay::kNoTask && played == m_played) {
                from = known;
            } else {
                // What its stream was given last takes the place of what it had been given then.
                const uint32_t lane = m_graph.info[edge.from].lane;
                if (lane == replay::kNoLane || lane == info.lane) continue;
                const bool pass = m_instance.part == StepPart::forward || m_instance.part == StepPart::backward;
                if (pass && lane == m_costs.arrival.lane)
                    continue;  // received data: waited for behind the group that brings them
                from = m_draft.last(lane);
                afterStart = false;
            }
            if (from != replay::kNoTask && from != copy) m_draft.addEdge(copy, from, kind, edge.delayNs, afterStart);
        }
        m_clone[task] = {copy, m_played};
        return copy;
    }

    void exchange(const PipelineAction& action, int step) {
        GroupMessages messages;
        for (const PipelineMessage& message : action.messages) messages.insert({message.send, message.peerStage});
        const auto inStep = [step](replay::TaskInfo info) {
            info.step = step;
            return info;
        };
        const auto [price, isNew] = m_prices[m_rank].try_emplace(std::move(messages));
        const GroupMessages& known = price->first;
        if (isNew) price->second = {m_costs.times.aloneNs(known), m_costs.times.besideSumsNs(known)};
        const auto [aloneNs, besideSumsNs] = price->second;
        const replay::TaskId call = m_draft.addTask(inStep(m_costs.call), m_costs.callNs, m_costs.leadNs);
        const replay::TaskId arrival = m_draft.addTask(inStep(m_costs.arrival), 0, m_costs.gapNs);
        const replay::TaskId transfer = m_draft.addTask(inStep(m_costs.transfer), aloneNs);
        m_groups.push_back({m_rank, transfer, &known, besideSumsNs});
        m_draft.addEdge(arrival, call, replay::WaitKind::launch, m_costs.launchDelayNs, m_costs.afterStart);
        m_costs.awaited.insert(m_computeLane);
        for (uint32_t lane : m_costs.awaited)
            if (lane != replay::kNoLane && lane != m_costs.arrival.lane && m_draft.last(lane) != replay::kNoTask)
                m_draft.addEdge(arrival, m_draft.last(lane), replay::WaitKind::event, m_costs.eventDelayNs);
        if (action.receives()) m_awaited = transfer;
        for (const PipelineMessage& message : action.messages) {
            Message& pair =
                m_messages[{m_parts.pipelineOf(m_rank), step, message.activation, message.micro, message.place}];
            (message.send ? pair.sender : pair.receiver) = {m_rank, arrival, transfer};
        }
    }

    void joinCollectives() {
        for (const auto& [key, joined] : m_joined) {
            const replay::Exchange& model = m_graph.exchanges[joined.exchange];
            if (joined.members.size() != model.members)
                throw EditError(
                    fmt::format("the ranks of communicator {} do not agree in what a pass does", model.communicatorId));
            replay::TaskInfo info = m_graph.info[model.join];
            info.step = key.second.step;
            replay::Exchange exchange = model;
            exchange.step = info.step;
            joinCollective(m_draft, info, exchange, joined.members);
        }
        m_joined = {};  // the graph is made without it: with many micro-batches it takes as much memory
    }

    void joinMessages() {
        const replay::Exchange* model = nullptr;
        for (const replay::Exchange& exchange : m_graph.exchanges)
            if (exchange.message()) model = &exchange;
        for (const auto& [key, pair] : m_messages) {
            if (pair.sender.arrival == replay::kNoTask || pair.receiver.arrival == replay::kNoTask)
                throw EditError("a message of the new schedule has one side only");
            replay::Exchange exchange = *model;
            exchange.step = std::get<1>(key);
            const std::array<replay::ExchangeMember, 2> members{pair.sender, pair.receiver};
            const uint32_t number = m_draft.addExchange(exchange, members);
            for (const replay::ExchangeMember& member : members)
                m_draft.info(member.arrival).detail = m_draft.info(member.transfer).detail = number;
            m_draft.addEdge(pair.sender.transfer, pair.receiver.arrival, replay::WaitKind::peer);
            m_draft.addEdge(pair.receiver.transfer, pair.sender.arrival, replay::WaitKind::peer);
        }
        m_messages = {};  // as m_joined
    }

    const replay::TaskGraph& m_graph;
    const PipelineParts& m_parts;
    PipelineShape m_shape;
    replay::GraphDraft m_draft;
    int m_rank = 0;
    GroupCosts m_costs;
    uint32_t m_computeLane = replay::kNoLane;
    std::vector<uint32_t> m_deviceLanes;
    Instance m_instance;
    uint32_t m_played = 0;                                     // passes so far
    replay::TaskId m_awaited = replay::kNoTask;                // received: the next compute waits for it
    std::vector<std::pair<replay::TaskId, uint32_t>> m_clone;  // by task of the graph: its last copy, and in which pass
    std::vector<uint32_t> m_exchangeOf;                        // by arrival: its collective
    std::map<replay::TaskId, replay::StepMark> m_marks;        // by call that begins or ends a step
    std::set<int64_t> m_gradients;
    double m_alphaNs;  // start-up of a message
    std::map<int, std::map<GroupMessages, std::pair<int64_t, int64_t>>>
        m_prices;  // by rank, of its groups: alone, beside sums of gradients
    std::vector<PlayedGroup> m_groups;
    std::map<std::pair<uint32_t, Instance>, Joined> m_joined;
    std::map<std::tuple<int, int, bool, int, int>, Message>
        m_messages;  // pipeline, step, activation, micro-batch, sender's place
};

}  // namespace

replay::TaskGraph rebuildPipeline(const replay::TaskGraph& graph, const job::Analysis& analysis,
                                  const PipelineParts& parts, const PipelineShape& shape) {
    std::set<int64_t> gradients;
    for (const auto& [id, role] : analysis.layout.roles)
        if (role == facts::CommRole::gradients) gradients.insert(id);
    double alphaNs = 0;
    for (const replay::Exchange& exchange : graph.exchanges)
        if (const auto communicator = analysis.facts.communicators.find(exchange.communicatorId);
            exchange.message() && communicator != analysis.facts.communicators.end())
            alphaNs = std::max(alphaNs, analysis.peaks.alphaPerHop(communicator->second));
    return Rebuild(graph, parts, shape, std::move(gradients), alphaNs).run();
}

}  // namespace rankscope::edits

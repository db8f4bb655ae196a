// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "analyzer/replay/message_times.h"
#include "analyzer/replay/replay.h"

namespace rankscope::replay {
namespace {

// More of the time of NCCL kernels unmatched says too little: a call or two at the ends of a recording have no partner.
constexpr double kMostUnmatched = 0.02;

class Joiner {
  public:
    Joiner(std::vector<RankTasks> ranks, const facts::TraceFacts& facts) : m_facts(facts) {
        size_t tasks = 0;
        for (const RankTasks& rank : ranks) tasks += rank.draft.size();
        m_draft.reserve(tasks + facts.collectives.size(), 2 * tasks);
        for (RankTasks& rank : ranks) take(rank);
    }

    JoinedRanks run() {
        joinCollectives();
        joinMessages();
        // What is left of a kernel when the last one that it waits for has arrived is its transfer.
        for (const auto& [rank, comms] : m_comms)
            for (const Kernel& kernel : comms) take(kernel);
        JoinedRanks result;
        if (m_unmatchedNs > kMostUnmatched * m_allNs) {
            result.problem = fmt::format(
                "{:.0f} % of the time of NCCL kernels is not matched with those of other ranks: how much of it was "
                "waiting is unknown",
                100.0 * m_unmatchedNs / m_allNs);
            return result;
        }
        std::optional<TaskGraph> graph = std::move(m_draft).seal();
        if (graph)
            result.graph = std::move(*graph);
        else
            result.problem = "the recorded waits contradict each other: some work waits for itself";
        return result;
    }

  private:
    struct Kernel : CommKernel {
        int64_t waitsUntilNs = 0;        // latest recorded arrival among those it waits for, its own included
        bool joined = false;             // with those of other ranks
        int64_t shortestNs = INT64_MAX;  // what its shortest message takes; kUnknownMessageNs: of one it is unknown
    };
    /// Orders by what does not depend on addresses.
    struct ByTask {
        bool operator()(const Kernel* a, const Kernel* b) const { return a->arrival < b->arrival; }
    };

    void take(RankTasks& rank) {
        std::vector<uint32_t> keys;
        for (const facts::KernelKey& key : rank.kernelKeys) {
            const auto [known, isNew] = m_keys.try_emplace(key, 0);
            if (isNew) known->second = m_draft.addKernelKey(key);
            keys.push_back(known->second);
        }
        const TaskId offset = m_draft.append(std::move(rank.draft));
        for (auto task = offset; task < m_draft.size(); ++task)
            if (m_draft.info(task).kind == TaskKind::kernel)
                m_draft.info(task).detail = keys[m_draft.info(task).detail];
        std::vector<Kernel>& comms = m_comms[rank.rank];
        for (const CommKernel& comm : rank.comms) {
            Kernel kernel{comm, comm.startNs, false, INT64_MAX};
            kernel.arrival += offset;
            kernel.transfer += offset;
            comms.push_back(kernel);
        }
        rank = RankTasks();
    }

    void take(const Kernel& kernel) {
        m_draft.durationNs(kernel.transfer) = kernel.endNs - kernel.waitsUntilNs;
        const auto ns = static_cast<double>(kernel.endNs - kernel.startNs);
        m_allNs += ns;
        const facts::Communicator* communicator = m_facts.findCommunicator(kernel.communicatorId);
        const bool alone = communicator != nullptr && communicator->size == 1;
        if (!kernel.joined && !alone) m_unmatchedNs += ns;
    }

    Kernel* find(int rank, int64_t kernelId) {
        const auto comms = m_comms.find(rank);
        if (comms == m_comms.end()) return nullptr;
        const auto at = std::ranges::lower_bound(comms->second, kernelId, {}, &Kernel::kernelId);
        return at != comms->second.end() && at->kernelId == kernelId ? &*at : nullptr;
    }

    /// Finds the kernel of a message: of that communicator, begun at that moment.
    Kernel* findAt(int rank, int64_t communicator, int64_t startNs) {
        const auto comms = m_comms.find(rank);
        if (comms == m_comms.end()) return nullptr;
        auto at = std::ranges::lower_bound(comms->second, startNs, {}, &Kernel::startNs);
        for (; at != comms->second.end() && at->startNs == startNs; ++at)
            if (at->communicatorId == communicator) return &*at;
        return nullptr;
    }

    TaskId addJoin(uint32_t row, int step) {
        return m_draft.addTask({.lane = kNoLane, .kind = TaskKind::join, .row = row, .step = step}, 0);
    }

    void joinCollectives() {
        std::vector<std::pair<int64_t, uint32_t>> byCollective;  // and where in the members
        byCollective.reserve(m_facts.members.size());
        for (const store::CollectiveMember& member : m_facts.members)
            byCollective.emplace_back(member.collectiveId, static_cast<uint32_t>(byCollective.size()));
        std::ranges::sort(byCollective);
        std::vector<std::pair<int, Kernel*>> members;
        for (size_t i = 0; i < byCollective.size();) {
            const int64_t id = byCollective[i].first;
            members.clear();
            for (; i < byCollective.size() && byCollective[i].first == id; ++i) {
                const store::CollectiveMember& member = m_facts.members[byCollective[i].second];
                Kernel* kernel = member.kernelId ? find(member.rank, *member.kernelId) : nullptr;
                if (kernel != nullptr) members.emplace_back(member.rank, kernel);
            }
            const store::Collective* collective = m_facts.findCollective(id);
            if (collective != nullptr && !members.empty()) join(*collective, members);
        }
    }

    void join(const store::Collective& collective, const std::vector<std::pair<int, Kernel*>>& members) {
        Exchange exchange{.bytes = collective.bytes.value_or(-1),
                          .id = static_cast<uint32_t>(collective.id),
                          .communicatorId = static_cast<uint32_t>(collective.communicatorId),
                          .op = collective.op,
                          .dataType = collective.dataType,
                          .algorithm = collective.algorithm,
                          .protocol = collective.protocol,
                          .step = m_draft.info(members.front().second->arrival).step};
        const TaskId join = exchange.join = addJoin(exchange.id, exchange.step);
        int64_t lastNs = INT64_MIN;
        std::vector<ExchangeMember> rows;
        for (const auto& [rank, kernel] : members) {
            m_draft.addEdge(join, kernel->arrival, WaitKind::peer);
            lastNs = std::max(lastNs, kernel->startNs);
            rows.push_back({rank, kernel->arrival, kernel->transfer});
        }
        const uint32_t index = m_draft.addExchange(exchange, rows);
        m_draft.info(join).detail = index;
        for (const auto& [rank, kernel] : members) {
            m_draft.info(kernel->arrival).detail = m_draft.info(kernel->transfer).detail = index;
            kernel->joined = true;
            // The root of a broadcast, or a sender of a reduction, may leave before the last one has come.
            if (kernel->endNs < lastNs && !store::isSynchronizing(exchange.op)) continue;
            m_draft.addEdge(kernel->transfer, join, WaitKind::peer);
            kernel->waitsUntilNs = std::max(kernel->waitsUntilNs, std::min(lastNs, kernel->endNs));
        }
    }

    struct Message {
        const store::P2p* row = nullptr;
        Kernel* send = nullptr;
        Kernel* receive = nullptr;
        bool joined = false;  // by that of an all-to-all
        int64_t takesNs = kUnknownMessageNs;
    };

    void joinMessages() {
        std::vector<Message> messages;
        for (const store::P2p& row : m_facts.pointToPoint) {
            if (!row.sendArrivalNs || !row.recvArrivalNs) continue;
            const Message message{&row, findAt(row.srcRank, row.communicatorId, *row.sendArrivalNs),
                                  findAt(row.dstRank, row.communicatorId, *row.recvArrivalNs), false,
                                  kUnknownMessageNs};
            if (message.send != nullptr && message.receive != nullptr && message.send != message.receive)
                messages.push_back(message);
        }
        for (const std::vector<Message*>& group : allToAlls(messages)) joinAllToAll(group);
        std::erase_if(messages, [](const Message& message) { return message.joined; });
        time(messages);
        for (const Message& message : messages) joinMessage(message);
    }

    /// Finds sets of kernels each of which sends to and receives from all others, as their messages.
    static std::vector<std::vector<Message*>> allToAlls(std::vector<Message>& messages) {
        std::map<const Kernel*, std::set<const Kernel*, ByTask>, ByTask> receivers;
        for (const Message& message : messages) receivers[message.send].insert(message.receive);
        std::map<const Kernel*, int, ByTask> groupOf;
        int groups = 0;
        for (const auto& [kernel, peers] : receivers) {
            if (groupOf.count(kernel) != 0 || peers.size() < 2) continue;
            std::set<const Kernel*, ByTask> all = peers;
            all.insert(kernel);
            const bool complete = std::ranges::all_of(peers, [&](const Kernel* peer) {
                const auto theirs = receivers.find(peer);
                if (theirs == receivers.end() || theirs->second.size() + 1 != all.size() || groupOf.count(peer) != 0)
                    return false;
                return std::ranges::all_of(theirs->second, [&](const Kernel* other) { return all.count(other) != 0; });
            });
            if (!complete) continue;
            for (const Kernel* member : all) groupOf[member] = groups;
            ++groups;
        }
        std::vector<std::vector<Message*>> result(static_cast<size_t>(groups));
        for (Message& message : messages) {
            const auto group = groupOf.find(message.send);
            if (group != groupOf.end()) result[static_cast<size_t>(group->second)].push_back(&message);
        }
        return result;
    }

    /// Makes one join instead of an edge for each pair.
    void joinAllToAll(const std::vector<Message*>& messages) {
        std::set<Kernel*, ByTask> kernels;
        for (const Message* message : messages) kernels.insert(message->send);
        int64_t lastNs = INT64_MIN;
        for (const Kernel* kernel : kernels) lastNs = std::max(lastNs, kernel->startNs);
        for (const Kernel* kernel : kernels)
            if (kernel->endNs < lastNs) return;  // one left early: its pairs do not wait for each other alike
        const TaskId join =
            addJoin(static_cast<uint32_t>(messages.front()->row->id), m_draft.info((*kernels.begin())->arrival).step);
        for (Kernel* kernel : kernels) {
            m_draft.addEdge(join, kernel->arrival, WaitKind::peer);
            m_draft.addEdge(kernel->transfer, join, WaitKind::peer);
            kernel->joined = true;
            kernel->waitsUntilNs = std::max(kernel->waitsUntilNs, lastNs);
        }
        for (Message* message : messages) {
            m_draft.info(join).detail = addMessage(*message, true);
            message->joined = true;
        }
    }

    uint32_t addMessage(const Message& message, bool grouped) {
        const store::P2p& row = *message.row;
        const Exchange exchange{.bytes = row.bytes.value_or(-1),
                                .id = static_cast<uint32_t>(row.id),
                                .communicatorId = static_cast<uint32_t>(row.communicatorId),
                                .op = store::Op::send,
                                .grouped = grouped,
                                .step = m_draft.info(message.receive->arrival).step};
        const std::array<ExchangeMember, 2> members{
            ExchangeMember{row.srcRank, message.send->arrival, message.send->transfer},
            ExchangeMember{row.dstRank, message.receive->arrival, message.receive->transfer}};
        const uint32_t index = m_draft.addExchange(exchange, members);
        for (Kernel* kernel : {message.send, message.receive})
            m_draft.info(kernel->arrival).detail = m_draft.info(kernel->transfer).detail = index;
        return index;
    }

    static void time(std::vector<Message>& messages) {
        std::vector<MessageEnds> ends;
        ends.reserve(messages.size());
        for (const Message& m : messages)
            ends.push_back({m.send->arrival, m.receive->arrival, m.row->srcRank, m.row->dstRank,
                            m.row->bytes.value_or(-1), std::max(m.send->startNs, m.receive->startNs), m.send->endNs,
                            m.receive->endNs});
        const std::vector<int64_t> times = messageTimes(ends);
        for (size_t i = 0; i < messages.size(); ++i) {
            messages[i].takesNs = times[i];
            for (Kernel* kernel : {messages[i].send, messages[i].receive})
                kernel->shortestNs = std::min(kernel->shortestNs, times[i]);
        }
    }

    void joinMessage(const Message& message) {
        addMessage(message, false);
        awaits(*message.receive, *message.send, message.takesNs);
        // A small message may leave before its receiver is there.
        if (message.send->endNs >= message.receive->startNs) awaits(*message.send, *message.receive, message.takesNs);
    }

    /// Lets a message that takes longer than the kernel's shortest keep it so much longer, counted from the later of
    /// its two arrivals.
    void awaits(Kernel& kernel, const Kernel& peer, int64_t takesNs) {
        kernel.joined = true;
        const int64_t joinedNs = std::min(std::max(kernel.startNs, peer.startNs), kernel.endNs);
        const int64_t longerNs =
            kernel.shortestNs == kUnknownMessageNs
                ? 0
                : std::min({takesNs - kernel.shortestNs, kernel.endNs - joinedNs, Edge::kLongestDelayNs});
        m_draft.addEdge(kernel.transfer, peer.arrival, WaitKind::peer, longerNs);
        m_draft.leadNs(kernel.transfer) = std::max(m_draft.leadNs(kernel.transfer), static_cast<uint32_t>(longerNs));
        kernel.waitsUntilNs = std::max(kernel.waitsUntilNs, joinedNs + longerNs);
    }

    const facts::TraceFacts& m_facts;
    GraphDraft m_draft;
    std::map<facts::KernelKey, uint32_t> m_keys;
    std::map<int, std::vector<Kernel>> m_comms;  // by rank
    double m_unmatchedNs = 0;
    double m_allNs = 0;
};

}  // namespace

JoinedRanks joinRanks(std::vector<RankTasks> ranks, const facts::TraceFacts& facts) {
    return Joiner(std::move(ranks), facts).run();
}

}  // namespace rankscope::replay

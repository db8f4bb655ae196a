// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/join_ranks.h"

#include <algorithm>
#include <array>
#include <map>

namespace rankscope::analyzer {
namespace {

class Joiner {
  public:
    Joiner(std::vector<RankTasks> ranks, const TraceFacts& facts) : m_facts(facts) {
        size_t tasks = 0;
        for (const RankTasks& rank : ranks) tasks += rank.draft.size();
        m_draft.reserve(tasks + facts.collectives.size(), 2 * tasks);
        for (RankTasks& rank : ranks) take(rank);
    }

    std::optional<TaskGraph> run() {
        joinCollectives();
        for (const store::P2p& row : m_facts.pointToPoint) joinMessage(row);
        // What is left of a kernel when the last one that it waits for has arrived is its transfer.
        for (const auto& [rank, comms] : m_comms)
            for (const Kernel& kernel : comms) m_draft.durationNs(kernel.transfer) = kernel.endNs - kernel.waitsUntilNs;
        return std::move(m_draft).seal();
    }

  private:
    struct Kernel : CommKernel {
        int64_t waitsUntilNs = 0;  // latest recorded arrival among those it waits for, its own included
    };

    void take(RankTasks& rank) {
        std::vector<uint32_t> keys;
        for (const KernelKey& key : rank.kernelKeys) {
            const auto [known, isNew] = m_keys.try_emplace(key, 0);
            if (isNew) known->second = m_draft.addKernelKey(key);
            keys.push_back(known->second);
        }
        const TaskId offset = m_draft.append(std::move(rank.draft));
        for (auto task = offset; task < m_draft.size(); ++task)
            if (m_draft.info(task).kind == TaskKind::kernel) m_draft.info(task).detail = keys[m_draft.info(task).detail];
        std::vector<Kernel>& comms = m_comms[rank.rank];
        for (const CommKernel& comm : rank.comms) {
            Kernel kernel{comm, comm.startNs};
            kernel.arrival += offset;
            kernel.transfer += offset;
            comms.push_back(kernel);
        }
        rank = RankTasks();
    }

    Kernel* find(int rank, int64_t kernelId) {
        const auto comms = m_comms.find(rank);
        if (comms == m_comms.end()) return nullptr;
        const auto at = std::lower_bound(comms->second.begin(), comms->second.end(), kernelId, [](const Kernel& k, int64_t id) { return k.kernelId < id; });
        return at != comms->second.end() && at->kernelId == kernelId ? &*at : nullptr;
    }

    /// The kernel of a message: of that communicator, begun at that moment.
    Kernel* findAt(int rank, int64_t communicator, int64_t startNs) {
        const auto comms = m_comms.find(rank);
        if (comms == m_comms.end()) return nullptr;
        auto at = std::lower_bound(comms->second.begin(), comms->second.end(), startNs, [](const Kernel& k, int64_t ns) { return k.startNs < ns; });
        for (; at != comms->second.end() && at->startNs == startNs; ++at)
            if (at->communicatorId == communicator) return &*at;
        return nullptr;
    }

    void joinCollectives() {
        std::vector<uint32_t> byCollective(m_facts.members.size());
        for (uint32_t i = 0; i < byCollective.size(); ++i) byCollective[i] = i;
        std::stable_sort(byCollective.begin(), byCollective.end(), [&](uint32_t a, uint32_t b) { return m_facts.members[a].collectiveId < m_facts.members[b].collectiveId; });
        std::vector<std::pair<int, Kernel*>> members;
        for (size_t i = 0; i < byCollective.size();) {
            const int64_t id = m_facts.members[byCollective[i]].collectiveId;
            members.clear();
            for (; i < byCollective.size() && m_facts.members[byCollective[i]].collectiveId == id; ++i) {
                const store::CollectiveMember& member = m_facts.members[byCollective[i]];
                Kernel* kernel = member.kernelId ? find(member.rank, *member.kernelId) : nullptr;
                if (kernel != nullptr) members.emplace_back(member.rank, kernel);
            }
            const store::Collective* collective = m_facts.findCollective(id);
            if (collective != nullptr && !members.empty()) join(*collective, members);
        }
    }

    void join(const store::Collective& collective, const std::vector<std::pair<int, Kernel*>>& members) {
        TaskInfo info;
        info.kind = TaskKind::join;
        info.lane = kNoLane;
        info.row = static_cast<uint32_t>(collective.id);
        info.step = m_draft.info(members.front().second->arrival).step;
        const TaskId join = m_draft.addTask(info, 0);
        int64_t lastNs = INT64_MIN;
        std::vector<ExchangeMember> rows;
        for (const auto& [rank, kernel] : members) {
            m_draft.addEdge(join, kernel->arrival, WaitKind::peer);
            lastNs = std::max(lastNs, kernel->startNs);
            rows.push_back({rank, kernel->arrival, kernel->transfer});
        }
        Exchange exchange;
        exchange.id = collective.id;
        exchange.communicatorId = collective.communicatorId;
        exchange.op = collective.op;
        exchange.dataType = collective.dataType;
        exchange.algorithm = collective.algorithm;
        exchange.protocol = collective.protocol;
        exchange.bytes = collective.bytes.value_or(-1);
        exchange.step = info.step;
        exchange.join = join;
        const uint32_t index = m_draft.addExchange(exchange, rows);
        m_draft.info(join).detail = index;
        for (const auto& [rank, kernel] : members) {
            m_draft.info(kernel->arrival).detail = m_draft.info(kernel->transfer).detail = index;
            // The root of a broadcast, or a sender of a reduction, may leave before the last one has come.
            if (kernel->endNs < lastNs && !store::isSynchronizing(collective.op)) continue;
            m_draft.addEdge(kernel->transfer, join, WaitKind::peer);
            kernel->waitsUntilNs = std::max(kernel->waitsUntilNs, std::min(lastNs, kernel->endNs));
        }
    }

    void joinMessage(const store::P2p& row) {
        if (!row.sendArrivalNs || !row.recvArrivalNs) return;
        Kernel* send = findAt(row.srcRank, row.communicatorId, *row.sendArrivalNs);
        Kernel* receive = findAt(row.dstRank, row.communicatorId, *row.recvArrivalNs);
        if (send == nullptr || receive == nullptr || send == receive) return;
        Exchange exchange;
        exchange.id = row.id;
        exchange.communicatorId = row.communicatorId;
        exchange.op = store::Op::send;
        exchange.bytes = row.bytes.value_or(-1);
        exchange.step = m_draft.info(receive->arrival).step;
        const std::array<ExchangeMember, 2> members{ExchangeMember{row.srcRank, send->arrival, send->transfer}, ExchangeMember{row.dstRank, receive->arrival, receive->transfer}};
        const uint32_t index = m_draft.addExchange(exchange, members);
        for (Kernel* kernel : {send, receive}) m_draft.info(kernel->arrival).detail = m_draft.info(kernel->transfer).detail = index;
        awaits(*receive, *send);
        // A small message may leave before its receiver is there.
        if (send->endNs >= receive->startNs) awaits(*send, *receive);
    }

    void awaits(Kernel& kernel, const Kernel& peer) {
        m_draft.addEdge(kernel.transfer, peer.arrival, WaitKind::peer);
        kernel.waitsUntilNs = std::max(kernel.waitsUntilNs, std::min(peer.startNs, kernel.endNs));
    }

    const TraceFacts& m_facts;
    GraphDraft m_draft;
    std::map<KernelKey, uint32_t> m_keys;
    std::map<int, std::vector<Kernel>> m_comms;  // by rank
};

}  // namespace

std::optional<TaskGraph> joinRanks(std::vector<RankTasks> ranks, const TraceFacts& facts) { return Joiner(std::move(ranks), facts).run(); }

}  // namespace rankscope::analyzer

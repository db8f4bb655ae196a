// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/undisturbed_messages.h"

#include <algorithm>
#include <map>

#include "analyzer/replay/message_times.h"

namespace rankscope::job {
namespace {

/// Sends and receives of a pipeline stage with both neighbours. The messages of larger groups share their ways.
constexpr int kMostCalls = 4;

/// The rank's kernel of sends and receives that begins then; null where another of its kernels runs beside what is left
/// of it behind the last arrival.
const facts::CommTask* kernelAt(const facts::RankSummary* rank, int64_t startNs) {
    if (rank == nullptr) return nullptr;
    const auto task = std::lower_bound(rank->communication.begin(), rank->communication.end(), startNs,
                                       [](const facts::CommTask& t, int64_t ns) { return t.startNs < ns; });
    if (task == rank->communication.end() || task->startNs != startNs || !task->pointToPoint() ||
        task->calls > kMostCalls)
        return nullptr;
    const int64_t from = task->startNs + (task->calls == 1 ? task->waitNs : 0);
    const auto overlaps = [&](const facts::CommTask& other) {
        return other.startNs + other.waitNs < task->endNs && other.endNs > from;
    };
    if (task + 1 != rank->communication.end() && overlaps(*(task + 1))) return nullptr;
    if (task != rank->communication.begin() && overlaps(*(task - 1))) return nullptr;
    return &*task;
}

/// A message of a group, and the ways that it takes.
struct Grouped {
    const store::P2p* row = nullptr;
    const facts::CommTask* sent = nullptr;
    const facts::CommTask* received = nullptr;
    bool inside = false;
};

class Groups {
  public:
    explicit Groups(const Analysis& analysis) : m_analysis(analysis) {}

    void add(const store::P2p& row, const facts::CommTask* sent, const facts::CommTask* received) {
        const Grouped message{&row, sent, received, m_analysis.facts.sameHost({row.srcRank, row.dstRank})};
        m_messages.push_back(message);
        ++m_kernels[sent].calls;
        ++m_kernels[received].calls;
        ++(message.inside ? m_kernels[sent].outInside : m_kernels[sent].outAcross);
        ++(message.inside ? m_kernels[received].inInside : m_kernels[received].inAcross);
    }

    void take(std::vector<UndisturbedMessage>& result) const {
        std::map<const facts::CommTask*, uint32_t> numbers;
        const auto numberOf = [&](const facts::CommTask* kernel) {
            return numbers.try_emplace(kernel, static_cast<uint32_t>(numbers.size())).first->second;
        };
        std::vector<replay::MessageEnds> ends;
        for (const Grouped& m : m_messages)
            ends.push_back({numberOf(m.sent), numberOf(m.received), m.row->srcRank, m.row->dstRank, *m.row->bytes,
                            std::max(m.sent->startNs, m.received->startNs), m.sent->endNs, m.received->endNs});
        const std::vector<int64_t> times = replay::shownTimes(ends);
        for (size_t i = 0; i < times.size(); ++i) {
            const Grouped& m = m_messages[i];
            if (times[i] <= 0 || !complete(m.sent) || !complete(m.received)) continue;
            const Kernel &sent = m_kernels.at(m.sent), &received = m_kernels.at(m.received);
            if ((m.inside ? sent.outInside : sent.outAcross) == 1 &&
                (m.inside ? received.inInside : received.inAcross) == 1)
                result.push_back({m.row, static_cast<double>(times[i])});
        }
    }

  private:
    struct Kernel {
        int calls = 0;
        int outInside = 0, outAcross = 0, inInside = 0, inAcross = 0;
    };

    /// All its messages are known.
    bool complete(const facts::CommTask* kernel) const { return m_kernels.at(kernel).calls == kernel->calls; }

    const Analysis& m_analysis;
    std::vector<Grouped> m_messages;
    std::map<const facts::CommTask*, Kernel> m_kernels;
};

}  // namespace

std::vector<UndisturbedMessage> undisturbedMessages(const Analysis& analysis) {
    std::vector<UndisturbedMessage> result;
    Groups groups(analysis);
    for (const store::P2p& row : analysis.facts.pointToPoint) {
        if (!row.bytes || !row.transferNs || *row.transferNs <= 0 || !row.sendArrivalNs || !row.recvArrivalNs) continue;
        const facts::CommTask* sent = kernelAt(analysis.findRank(row.srcRank), *row.sendArrivalNs);
        const facts::CommTask* received = kernelAt(analysis.findRank(row.dstRank), *row.recvArrivalNs);
        if (sent == nullptr || received == nullptr) continue;
        if (sent->calls == 1 && received->calls == 1)
            result.push_back({&row, static_cast<double>(*row.transferNs)});
        else
            groups.add(row, sent, received);
    }
    groups.take(result);
    return result;
}

}  // namespace rankscope::job

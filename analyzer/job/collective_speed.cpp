// SPDX-License-Identifier: Apache-2.0
#include "analyzer/job/collective_speed.h"

#include <algorithm>
#include <map>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/costs/reached_share.h"
#include "analyzer/facts/operation.h"
#include "analyzer/facts/statistics.h"
#include "analyzer/replay/message_times.h"

namespace rankscope::job {

std::set<const facts::CommTask*> disturbedTasks(const facts::RankSummary& rank) {
    std::set<const facts::CommTask*> disturbed;
    const std::vector<facts::CommTask>& tasks = rank.communication;
    for (size_t i = 0; i < tasks.size(); ++i)
        for (size_t k = i + 1; k < tasks.size() && tasks[k].startNs < tasks[i].endNs; ++k) {
            const int64_t together = std::min(tasks[i].endNs, tasks[k].endNs) -
                                     std::max(tasks[i].startNs + tasks[i].waitNs, tasks[k].startNs + tasks[k].waitNs);
            for (const facts::CommTask* task : {&tasks[i], &tasks[k]})
                if (together > 0 && static_cast<double>(together) > CollectiveSpeedThresholds::kSharedShare *
                                                                        static_cast<double>(task->transferNs()))
                    disturbed.insert(task);
        }
    return disturbed;
}

std::set<int64_t> sharedCollectives(std::span<const facts::RankSummary> ranks) {
    std::set<int64_t> shared;
    for (const facts::RankSummary& rank : ranks)
        for (const facts::CommTask* task : disturbedTasks(rank)) shared.insert(task->collectiveId);
    return shared;
}

std::optional<double> expectedOfLargeNs(const costs::LinkPeaks& peaks, const facts::Communicator& communicator,
                                        store::Op op, double bytes, costs::AlgorithmChoice choice, double measuredNs) {
    // Without a latency messages of some megabytes, which grow into their rate, would look slow.
    const std::optional<costs::LinkModel> link = costs::linkWithLatency(peaks, communicator, op);
    if (!link) return std::nullopt;
    const double expected = costs::collectiveNs(*link, op, communicator.size, bytes, choice).high;
    const double startup = costs::latencyHops(*link, op, communicator.size, choice).high * link->alphaNs;
    if (startup > CollectiveSpeedThresholds::kStartupShare * expected) return std::nullopt;
    // A link this slow, whatever holds the protocol, leaves it what its format does. What is less slow may be healthy.
    const double slowFromNs = costs::kSlowLink * expected * costs::healthyLateness(*link, bytes) /
                              costs::ceilingShare(peaks, communicator, op).share.low;
    return measuredNs < slowFromNs ? expected : costs::linkBoundNs(*link, op, communicator.size, bytes, choice);
}

bool slowedByCompute(const Analysis& analysis, const facts::Communicator& communicator) {
    const auto limit = analysis.peaks.ceiling(communicator);
    return limit && !limit->betweenNodes && costs::isPcie(costs::mediumOf(*limit->link, false));
}

namespace {

/// Says how much longer each collective may take because its ranks compute meanwhile: over PCIe, whose copies compute
/// slows. 1 elsewhere.
class BesideCompute {
  public:
    BesideCompute(const Analysis& analysis, const facts::Communicator& communicator) {
        if (!slowedByCompute(analysis, communicator)) return;
        for (const int member : communicator.ranks) {
            const facts::RankSummary* rank = analysis.findRank(member);
            if (rank == nullptr) continue;
            for (const facts::CommTask& task : rank->communication) {
                if (task.communicatorId != communicator.id || task.transferNs() <= 0) continue;
                double& share = m_shares[task.collectiveId];  // of the member that computes most
                share = std::max(
                    share, 1 - static_cast<double>(task.exposedTransferNs) / static_cast<double>(task.transferNs()));
            }
        }
    }

    double times(int64_t collectiveId) const {
        const auto at = m_shares.find(collectiveId);
        const double share = at == m_shares.end() ? 0 : std::clamp(at->second, 0.0, 1.0);
        return 1 / (1 - share * (1 - 1 / CollectiveSpeedThresholds::kPcieBesideCompute));
    }

  private:
    std::map<int64_t, double> m_shares;
};

}  // namespace

std::vector<LargeCollective> largeCollectives(const Analysis& analysis, const facts::Communicator& communicator) {
    std::vector<LargeCollective> result;
    const auto rows = analysis.collectivesOf.find(communicator.id);
    if (communicator.size < 2 || rows == analysis.collectivesOf.end()) return result;
    const BesideCompute beside(analysis, communicator);
    for (const uint32_t row : rows->second) {
        const store::Collective& collective = analysis.facts.collectives[row];
        if (!collective.step || !collective.transferNs || *collective.transferNs <= 0) continue;
        if (!collective.bytes || *collective.bytes <= 0 || !store::isSynchronizing(collective.op) ||
            analysis.sharedCollectives.contains(collective.id))
            continue;
        if (!std::ranges::binary_search(analysis.steps, *collective.step)) continue;
        const auto transferNs = static_cast<double>(*collective.transferNs);
        const std::optional<double> expected =
            expectedOfLargeNs(analysis.peaks, communicator, collective.op, static_cast<double>(*collective.bytes),
                              {collective.algorithm, collective.protocol}, transferNs);
        if (expected) result.push_back({&collective, transferNs, *expected * beside.times(collective.id)});
    }
    return result;
}

double busBytesPerNs(const std::vector<LargeCollective>& collectives, int ranks) {
    std::vector<double> rates;
    for (const LargeCollective& c : collectives)
        rates.push_back(static_cast<double>(*c.collective->bytes) * facts::busFactor(c.collective->op, ranks) /
                        c.transferNs);
    return facts::median(std::move(rates));
}

std::optional<double> slownessOf(const std::vector<LargeCollective>& collectives) {
    if (collectives.size() < CollectiveSpeedThresholds::kFewest) return std::nullopt;
    std::vector<double> values;
    for (const LargeCollective& c : collectives) values.push_back(c.slowness());
    return facts::median(std::move(values));
}

namespace {

/// Sends and receives of a pipeline stage with both neighbours. The messages of larger groups share their ways.
constexpr int kMostCalls = 4;

/// Finds a rank's communication by when it began. Messages come by sender, receiver and time: the next one begins
/// little behind the last one of the same rank.
class TaskFinder {
  public:
    explicit TaskFinder(const Analysis& analysis) : m_analysis(analysis) {}

    const facts::RankSummary* rank() const { return m_summary; }

    /// The first task of the rank that begins no earlier.
    std::vector<facts::CommTask>::const_iterator notBefore(int rank, int64_t startNs) {
        if (rank != m_rank || m_summary == nullptr) {
            m_rank = rank;
            m_summary = m_analysis.findRank(rank);
            m_at = 0;
            if (m_summary == nullptr) return {};
        }
        const std::vector<facts::CommTask>& tasks = m_summary->communication;
        const auto isBefore = [&](size_t i) { return tasks[i].startNs < startNs; };
        constexpr size_t kNear =
            32;  // tasks between two messages to one rank: others to its neighbours; further ones are searched
        size_t at = m_at;
        if (at > 0 && !isBefore(at - 1)) at = tasks.size();  // it lies before the last one
        for (size_t end = std::min(tasks.size(), at + kNear); at < end && isBefore(at);) ++at;
        const bool found = at < tasks.size() && !isBefore(at);
        const auto place = found ? tasks.begin() + static_cast<std::ptrdiff_t>(at)
                                 : std::ranges::lower_bound(tasks, startNs, {}, &facts::CommTask::startNs);
        m_at = static_cast<size_t>(place - tasks.begin());
        return place;
    }

  private:
    const Analysis& m_analysis;
    int m_rank = -1;
    const facts::RankSummary* m_summary = nullptr;
    size_t m_at = 0;
};

/// The rank's kernel of sends and receives that begins then; null where another of its kernels runs beside what is left
/// of it behind the last arrival.
const facts::CommTask* kernelAt(TaskFinder& finder, int number, int64_t startNs) {
    const auto task = finder.notBefore(number, startNs);
    const facts::RankSummary* rank = finder.rank();
    if (rank == nullptr) return nullptr;
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
    uint32_t sent = 0, received = 0;  // its kernels by number
    bool inside = false;
};

class Groups {
  public:
    explicit Groups(const Analysis& analysis) : m_analysis(analysis), m_numbers(analysis.ranks.size()) {}

    void add(const store::P2p& row, const facts::CommTask* sent, const facts::CommTask* received) {
        const bool inside = m_analysis.facts.sameHost({row.srcRank, row.dstRank});
        const Grouped& message = m_messages.emplace_back(
            Grouped{&row, numberOf(row.srcRank, sent), numberOf(row.dstRank, received), inside});
        Kernel& sender = m_kernels[message.sent];
        ++sender.calls;
        ++sender.out[inside];
        Kernel& receiver = m_kernels[message.received];
        ++receiver.calls;
        ++receiver.in[inside];
    }

    void take(std::vector<UndisturbedMessage>& result) const {
        std::vector<replay::MessageEnds> ends;
        for (const Grouped& m : m_messages) {
            const facts::CommTask &sent = *m_kernels[m.sent].task, &received = *m_kernels[m.received].task;
            ends.push_back({m.sent, m.received, m.row->srcRank, m.row->dstRank, *m.row->bytes,
                            std::max(sent.startNs, received.startNs), sent.endNs, received.endNs});
        }
        const std::vector<int64_t> times = replay::shownTimes(ends);
        for (size_t i = 0; i < times.size(); ++i) {
            const Grouped& m = m_messages[i];
            const Kernel &sent = m_kernels[m.sent], &received = m_kernels[m.received];
            if (times[i] > 0 && sent.complete() && received.complete() && sent.out[m.inside] == 1 &&
                received.in[m.inside] == 1)
                result.push_back({m.row, static_cast<double>(times[i])});
        }
    }

  private:
    struct Kernel {
        const facts::CommTask* task = nullptr;
        int calls = 0;
        int out[2] = {0, 0}, in[2] = {0, 0};  // to other nodes, inside the node

        /// All its messages are known.
        bool complete() const { return calls == task->calls; }
    };

    uint32_t numberOf(int rank, const facts::CommTask* task) {
        const facts::RankSummary* summary = m_analysis.findRank(rank);
        std::vector<uint32_t>& numbers = m_numbers[static_cast<size_t>(summary - m_analysis.ranks.data())];
        if (numbers.empty()) numbers.resize(summary->communication.size(), kNone);
        uint32_t& number = numbers[static_cast<size_t>(task - summary->communication.data())];
        if (number == kNone) {
            number = static_cast<uint32_t>(m_kernels.size());
            m_kernels.push_back({.task = task});
        }
        return number;
    }

    static constexpr uint32_t kNone = UINT32_MAX;

    const Analysis& m_analysis;
    std::vector<Grouped> m_messages;
    std::vector<Kernel> m_kernels;
    std::vector<std::vector<uint32_t>> m_numbers;  // by rank and task: its kernel, or kNone
};

}  // namespace

std::vector<UndisturbedMessage> undisturbedMessages(const Analysis& analysis) {
    std::vector<UndisturbedMessage> result;
    Groups groups(analysis);
    TaskFinder senders(analysis), receivers(analysis);
    for (const store::P2p& row : analysis.facts.pointToPoint) {
        if (!row.bytes || !row.transferNs || *row.transferNs <= 0 || !row.sendArrivalNs || !row.recvArrivalNs) continue;
        const facts::CommTask* sent = kernelAt(senders, row.srcRank, *row.sendArrivalNs);
        const facts::CommTask* received = kernelAt(receivers, row.dstRank, *row.recvArrivalNs);
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

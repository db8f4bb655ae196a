// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/analyzer/small_job.h"

#include <array>

#include "analyzer/replay/graph_draft.h"

namespace rankscope::test {
namespace {

constexpr int kRanks = 2, kSteps = 3;

class Builder {
  public:
    explicit Builder(const SmallJob& job) : m_job(job) {
        for (int rank = 0; rank < kRanks; ++rank) {
            m_host[rank] = m_draft.addLane({rank, true, rank});
            m_stream[rank] = m_draft.addLane({rank, false, 10 + rank});
            m_key[rank] = rank == 0 || job.differentGrids
                              ? m_draft.addKernelKey({SmallJob::kKernelName, 100 + rank, 256})
                              : m_key[0];
        }
    }

    replay::TaskGraph build() {
        for (int step = 0; step < kSteps; ++step) {
            for (int rank = 0; rank < kRanks; ++rank) mark(rank, step, false);
            for (int i = 0; i < m_job.reductions; ++i) work(step);
            for (int rank = 0; rank < kRanks; ++rank) waitFor(rank, step, m_last[rank]);
        }
        for (int rank = 0; rank < kRanks; ++rank) mark(rank, kSteps - 1, true);
        return *std::move(m_draft).seal();
    }

  private:
    replay::TaskId add(uint32_t lane, replay::TaskKind kind, int step, int64_t durationNs, int64_t leadNs,
                       uint32_t detail = 0, uint32_t row = 0) {
        return m_draft.addTask({lane & replay::kNoLane, kind, row, detail, step}, durationNs, leadNs);
    }
    void mark(int rank, int step, bool closes) {
        const replay::TaskId host = add(m_host[rank], replay::TaskKind::host, step, 0, 10);
        const replay::TaskId task = add(replay::kNoLane, replay::TaskKind::stepMark, step, 0, 0);
        m_draft.addEdge(task, host, replay::WaitKind::mark);
        m_draft.addMark({rank, step, closes, task});
    }
    replay::TaskId call(int rank, int step, int64_t leadNs) {
        return add(m_host[rank], replay::TaskKind::host, step, 2, leadNs, SmallJob::kLaunchName, ++m_row);
    }
    void waitFor(int rank, int step, replay::TaskId task) {
        m_draft.addEdge(add(m_host[rank], replay::TaskKind::blockingCall, step, 0, 1, SmallJob::kWaitName, ++m_row),
                        task, replay::WaitKind::blocking);
    }
    void work(int step) {
        std::array<replay::ExchangeMember, kRanks> members;
        for (int rank = 0; rank < kRanks; ++rank) {
            const int64_t ns = (rank == 0 ? 100 : 150) + (rank == 1 && step == 1 ? m_job.extraNs : 0);
            const replay::TaskId launch = call(rank, step, 5);
            const replay::TaskId kernel = add(m_stream[rank], replay::TaskKind::kernel, step, ns, 0, m_key[rank]);
            m_draft.addEdge(kernel, launch, replay::WaitKind::launch, 6, true);
            if (m_job.readBackNs >= 0) waitFor(rank, step, kernel);
            const replay::TaskId reduce = call(rank, step, m_job.readBackNs >= 0 ? m_job.readBackNs : 5);
            const replay::TaskId arrival = add(m_stream[rank], replay::TaskKind::arrival, step, 0, 0);
            m_draft.addEdge(arrival, reduce, replay::WaitKind::launch, 6, true);
            m_last[rank] = add(m_stream[rank], replay::TaskKind::transfer, step, 30, 0);
            members[static_cast<size_t>(rank)] = {rank, arrival, m_last[rank]};
        }
        const replay::TaskId join = add(replay::kNoLane, replay::TaskKind::join, step, 0, 0);
        for (const replay::ExchangeMember& member : members) {
            m_draft.addEdge(join, member.arrival, replay::WaitKind::peer);
            m_draft.addEdge(member.transfer, join, replay::WaitKind::peer);
        }
        replay::Exchange exchange;
        exchange.communicatorId = SmallJob::kCommunicator;
        exchange.op = store::Op::allReduce;
        exchange.dataType = store::DataType::f32;
        exchange.bytes = 1000;
        exchange.step = step;
        exchange.join = join;
        m_draft.addExchange(exchange, members);
    }

    const SmallJob& m_job;
    replay::GraphDraft m_draft;
    uint32_t m_host[kRanks], m_stream[kRanks], m_key[kRanks];
    replay::TaskId m_last[kRanks];
    uint32_t m_row = 0;
};

}  // namespace

job::Analysis SmallJob::analysis() const {
    job::Analysis analysis;
    analysis.facts.strings = {"", "gemm_kernel", "cudaStreamSynchronize", "cudaLaunchKernel"};
    facts::Communicator communicator;
    communicator.id = kCommunicator;
    communicator.size = kRanks;
    for (int rank = 0; rank < kRanks; ++rank) {
        facts::RankFacts facts;
        facts.rank = rank;
        facts.recorded = true;
        facts.hostId = 1;
        analysis.facts.ranks.push_back(facts);
        facts::RankSummary summary;
        summary.rank = rank;
        analysis.ranks.push_back(summary);
        communicator.ranks.push_back(rank);
    }
    analysis.facts.communicators[kCommunicator] = communicator;
    analysis.layout.roles[kCommunicator] = facts::CommRole::gradients;
    analysis.layout.uses[kCommunicator][store::Op::allReduce] = {facts::CommRole::gradients, 1};
    analysis.steps = {0, 1, 2};
    replay::ReplayModel& replay = analysis.replay;
    replay.unavailable.clear();
    replay.steps = analysis.steps;
    replay.graph = Builder(*this).build();
    replay.playUnchanged();
    replay.measuredStepNs = replay.predictedStepNs;
    analysis.stepNs = replay.predictedStepNs;
    return analysis;
}

job::Analysis withRankLeftOut(job::Analysis analysis, int64_t kernelNs) {
    facts::RankSummary rank;
    rank.rank = 2;
    for (const int step : analysis.steps)
        analysis.works[{-1, step, SmallJob::kKernelName}] = {{{0, 100}, {1, 150}}, static_cast<double>(kernelNs)};
    analysis.ranks.push_back(rank);
    analysis.replay.leftOut = {2};
    return analysis;
}

double stepAfter(const job::Analysis& analysis, const std::vector<std::string>& changes) {
    return edits::whatIf(analysis, edits::parseEdits(changes)).changedStepNs;
}

}  // namespace rankscope::test

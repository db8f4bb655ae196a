// SPDX-License-Identifier: Apache-2.0
// From events of ranks to a graph and its replay, on jobs small enough to be written down.
#include <gtest/gtest.h>

#include "analyzer/replay/replay.h"
#include "tests/unit/analyzer/units.h"

namespace rankscope::replay {
namespace {

using test::kUs;
constexpr int32_t kCompute = 1, kNetwork = 2, kOrder = 3;  // streams; the last one runs nothing

/// One rank's events as it would have recorded them; times in us.
class RankPlayer {
  public:
    explicit RankPlayer(int rank) { m_events.rank = rank; }

    int64_t call(store::ApiKind kind, int64_t start, int64_t end, bool waits = false) {
        facts::HostCall call;
        call.startNs = start * kUs;
        call.endNs = end * kUs;
        call.correlation = ++m_correlation;
        call.kind = kind;
        call.waits = waits;
        call.id = m_correlation;
        call.nameId = static_cast<int32_t>(kind) + 1;
        call.threadId = 1;
        m_events.hostCalls.push_back(call);
        return m_correlation;
    }
    /// `returned`: when its call does; without it 2 us after it began.
    void kernel(int64_t callAt, int64_t start, int64_t end, int64_t returned = -1) {
        const int64_t launch = call(store::ApiKind::launch, callAt, returned < 0 ? callAt + 2 : returned);
        m_events.compute.push_back({start * kUs, end * kUs, {1, 8, 128}, kCompute, m_row++, launch});
    }
    void collective(int64_t callAt, int64_t start, int64_t end, int64_t kernelId) {
        facts::CommTask task;
        task.kernelId = kernelId;
        task.streamId = kNetwork;
        task.communicatorId = 1;
        task.startNs = start * kUs;
        task.endNs = end * kUs;
        task.correlation = call(store::ApiKind::launch, callAt, callAt + 2);
        m_events.communication.push_back(task);
    }
    void copy(int64_t callAt, int64_t start, int64_t end, int32_t stream) {
        facts::MemoryTask task;
        task.startNs = start * kUs;
        task.endNs = end * kUs;
        task.streamId = stream;
        task.copyId = ++m_row;
        task.correlation = call(store::ApiKind::copy, callAt, callAt + 2);
        m_events.memory.push_back(task);
    }
    void record(int64_t at, int64_t event, int32_t stream) {
        m_events.eventRecords.push_back({call(store::ApiKind::event, at, at + 1), event, stream});
    }
    void wait(int64_t at, int64_t event, int32_t stream) {
        m_events.synchronizations.push_back({call(store::ApiKind::event, at, at + 1), event, stream,
                                             facts::SynchronizationRecord::Kind::streamWaitEvent});
    }
    void synchronize(int64_t start, int64_t end, int32_t stream) {
        m_events.synchronizations.push_back({call(store::ApiKind::synchronize, start, end, true), -1, stream,
                                             facts::SynchronizationRecord::Kind::stream});
    }
    void step(int number, int64_t start, int64_t end) {
        m_events.ranges.push_back({start * kUs, end * kUs, 10 + number, 1, false});
    }
    /// A kernel of 1 us, launched before the recording began.
    void unlaunchedKernel(int64_t start) {
        m_events.compute.push_back({start * kUs, (start + 1) * kUs, {1, 8, 128}, kCompute, m_row++, -1});
    }
    const facts::RankEvents& events() const { return m_events; }

  private:
    facts::RankEvents m_events;
    int64_t m_correlation = 0;
    int32_t m_row = 0;
};

/// Two steps of two ranks: a kernel, a collective behind it on another stream, and a wait for it. Rank 1 computes
/// longer. A step, from its start: launch 10 (starts 16), record 13, wait 14, collective called 15, synchronisation 20.
/// Kernels take 100 and 160 us, the transfer 40.
struct Job {
    static constexpr int64_t kStepUs = 240;

    Job() {
        facts.stepSource = "nvtx:step";
        facts.strings.resize(20);
        facts.strings[10] = "step 0";
        facts.strings[11] = "step 1";
        facts.strings[12] = "step 2";
        facts::Communicator& communicator = facts.communicators[1];
        communicator.id = 1;
        communicator.size = 2;
        communicator.ranks = {0, 1};
        for (int rank = 0; rank < 2; ++rank) {
            facts::RankFacts known;
            known.rank = rank;
            known.recorded = true;
            RankPlayer player(rank);
            for (int step = 0; step < 3; ++step) {
                const int64_t at = 1000 + step * kStepUs;
                known.steps.push_back({step, at * kUs, kStepUs * kUs, false});
                const int64_t computeEnd = at + 16 + (rank == 0 ? 100 : 160);
                const int64_t end = at + 16 + 160 + 40;
                player.step(step, at, at + kStepUs);
                player.kernel(at + 10, at + 16, computeEnd);
                player.record(at + 13, 5, kCompute);
                player.wait(at + 14, 5, kNetwork);
                player.collective(at + 15, computeEnd, end, 100 * (rank + 1) + step);
                player.synchronize(at + 20, end + 1, kNetwork);
                member(rank, step, 100 * (rank + 1) + step);
            }
            facts.ranks.push_back(known);
            players.push_back(player);
        }
        for (int step = 0; step < 3; ++step) {
            store::Collective collective;
            collective.id = step + 1;
            collective.communicatorId = 1;
            collective.op = store::Op::allReduce;
            collective.bytes = 1 << 20;
            facts.collectives.push_back(collective);
        }
    }

    void member(int rank, int step, int64_t kernelId) {
        store::CollectiveMember row;
        row.collectiveId = step + 1;
        row.rank = rank;
        row.kernelId = kernelId;
        facts.members.push_back(row);
    }

    ReplayModel play(const ReplayWindow& window = {}) const {
        std::vector<RankTasks> ranks;
        for (const RankPlayer& player : players) ranks.push_back(rankTasks(player.events(), facts, window));
        return replay(facts, std::move(ranks), {0, 1, 2}, window);
    }

    facts::TraceFacts facts;
    std::vector<RankPlayer> players;
};

TaskId only(const TaskGraph& graph, TaskKind kind, int rank, int step) {
    for (TaskId task = 0; task < graph.size(); ++task)
        if (graph.info[task].kind == kind && graph.rankOf(task) == rank && graph.info[task].step == step) return task;
    return kNoTask;
}

/// NCCL orders its kernels by way of a stream that runs nothing: what it waits for is known, and nothing is inferred.
TEST(ReplayJob, AStreamThatRunsNothingStandsForWhatItWaitsFor) {
    Job job;
    job.players.clear();
    for (int rank = 0; rank < 2; ++rank) {
        RankPlayer player(rank);
        for (int step = 0; step < 3; ++step) {
            const int64_t at = 1000 + step * Job::kStepUs, computeEnd = at + 16 + (rank == 0 ? 100 : 160),
                          end = at + 16 + 160 + 40;
            player.step(step, at, at + Job::kStepUs);
            player.kernel(at + 6, at + 16, computeEnd);
            player.record(at + 8, 5, kCompute);
            player.wait(at + 9, 5, kNetwork);
            player.record(at + 11, 6, kOrder);
            player.wait(at + 12, 6, kNetwork);
            player.collective(at + 13, computeEnd, end, 100 * (rank + 1) + step);
            player.record(at + 15, 6, kNetwork);
            player.wait(at + 16, 6, kOrder);
            player.kernel(at + 17, computeEnd, computeEnd + 4);  // the thread's last stream is compute's
            player.synchronize(at + 20, end + 1, kNetwork);
        }
        job.players.push_back(player);
    }
    const ReplayModel model = job.play();
    ASSERT_TRUE(model.available()) << model.unavailable;
    EXPECT_EQ(model.edges.inferredWaits, 0);
    EXPECT_EQ(model.edges.contradicted, 0);
    EXPECT_DOUBLE_EQ(model.predictedStepNs, 240'000);
}

TEST(ReplayJob, UnchangedGivesTheMeasuredStep) {
    const ReplayModel model = Job().play();
    ASSERT_TRUE(model.available()) << model.unavailable;
    EXPECT_DOUBLE_EQ(model.measuredStepNs, 240'000);
    EXPECT_DOUBLE_EQ(model.predictedStepNs, 240'000);
    EXPECT_EQ(model.edges.contradicted, 0);
    EXPECT_EQ(model.edges.inferredWaits, 0);
}

TEST(ReplayJob, TransfersLastFromTheLastArrival) {
    const ReplayModel model = Job().play();
    for (int rank = 0; rank < 2; ++rank)
        EXPECT_EQ(model.graph.durationNs[only(model.graph, TaskKind::transfer, rank, 0)], 40'000);
}

TEST(ReplayJob, WaitsAreComputedAnewWhenTheSlowRankIsFaster) {
    const ReplayModel model = Job().play();
    std::vector<int64_t> durations = model.graph.durationNs;
    for (TaskId task = 0; task < model.graph.size(); ++task)
        if (model.graph.info[task].kind == TaskKind::kernel && model.graph.rankOf(task) == 1) durations[task] = 110'000;
    EXPECT_DOUBLE_EQ(model.stepNs(model.graph, simulate(model.graph, durations)), 190'000);
    for (int64_t& ns : durations) ns = std::min<int64_t>(ns, 100'000);
    EXPECT_DOUBLE_EQ(model.stepNs(model.graph, simulate(model.graph, durations)), 180'000);
}

TEST(ReplayJob, FasterTransfersShortenTheStepByWhatTheyCost) {
    const ReplayModel model = Job().play();
    std::vector<int64_t> durations = model.graph.durationNs;
    for (const Exchange& exchange : model.graph.exchanges) {
        EXPECT_EQ(exchange.bytes, 1 << 20);
        for (const ExchangeMember& member : model.graph.membersOf(exchange)) durations[member.transfer] /= 4;
    }
    EXPECT_DOUBLE_EQ(model.stepNs(model.graph, simulate(model.graph, durations)), 210'000);
}

TEST(ReplayJob, TheCriticalPathRunsThroughTheSlowRank) {
    const ReplayModel model = Job().play();
    double compute = 0, transfer = 0, onSlowRank = 0, all = 0;
    for (const PathShare& share : model.path) {
        all += share.nsPerStep;
        if (share.rank == 1) onSlowRank += share.nsPerStep;
        if (share.category == PathCategory::compute) compute += share.nsPerStep;
        if (share.category == PathCategory::transfer) transfer += share.nsPerStep;
    }
    EXPECT_NEAR(all, 240'000, 1);
    EXPECT_NEAR(compute, 160'000, 1);
    EXPECT_NEAR(transfer, 40'000, 1);
    EXPECT_GE(onSlowRank, 160'000);
}

TEST(ReplayJob, APartOfALongTraceGivesTheSameStep) {
    const Job job;
    const ReplayModel model = job.play({1, 2});
    ASSERT_TRUE(model.available()) << model.unavailable;
    EXPECT_EQ(model.steps, std::vector<int>{1});
    EXPECT_DOUBLE_EQ(model.predictedStepNs, 240'000);
    EXPECT_LT(model.graph.size(), job.play().graph.size());
    EXPECT_EQ(model.notes.size(), 1u);
}

TEST(ReplayJob, AWaitThatTheTimesContradictIsLeftOut) {
    Job job;
    job.players.pop_back();
    job.facts.ranks.pop_back();
    RankPlayer player(1);
    facts::RankFacts known;
    known.rank = 1;
    known.recorded = true;
    for (int step = 0; step < 3; ++step) {
        const int64_t at = 1000 + step * Job::kStepUs;
        known.steps.push_back({step, at * kUs, Job::kStepUs * kUs, false});
        player.step(step, at, at + Job::kStepUs);
        player.kernel(at + 10, at + 16, at + 230);
        player.record(at + 13, 5, kCompute);
        player.wait(at + 14, 5, kNetwork);
        player.collective(at + 15, at + 176, at + 216, 200 + step);  // long before the kernel is done
        player.synchronize(at + 20, at + 217, kNetwork);
    }
    job.facts.ranks.push_back(known);
    job.players.push_back(player);
    const ReplayModel model = job.play();
    ASSERT_TRUE(model.available()) << model.unavailable;
    EXPECT_EQ(model.edges.contradicted, 3);
}

/// One rank, two steps: a copy on another stream from 20 to 1000 (us), `queued` kernels of 1 us behind it, each called
/// in 1 us, and `last` call that returns with the copy.
RankPlayer fullQueue(facts::TraceFacts& facts, int queued, int64_t last) {
    facts.stepSource = "nvtx:step";
    facts.strings.resize(20);
    facts.strings[10] = "step 0";
    facts.strings[11] = "step 1";
    facts::RankFacts known;
    known.rank = 0;
    known.recorded = true;
    RankPlayer player(0);
    for (int step = 0; step < 2; ++step) {
        const int64_t at = 3000 * step;
        known.steps.push_back({step, at * kUs, 3000 * kUs, false});
        player.step(step, at, at + 3000);
        player.copy(at + 10, at + 20, at + 1000, kNetwork);
        player.record(at + 14, 5, kNetwork);
        player.wait(at + 15, 5, kCompute);
        for (int i = 0; i < queued; ++i) player.kernel(at + 20 + 2 * i, at + 1000 + i, at + 1001 + i);
        player.kernel(at + 20 + 2 * queued, at + 1000 + queued, at + 1001 + queued, at + last);
        player.synchronize(at + last + 1, std::max(at + 1002 + queued, at + last + 2), kCompute);
    }
    facts.ranks.push_back(known);
    return player;
}

TEST(ReplayJob, ACallHeldUpByAFullQueueWaitsForWhatItsStreamWaitsFor) {
    facts::TraceFacts facts;
    const RankPlayer player = fullQueue(facts, 300, 1000);
    const RankTasks tasks = rankTasks(player.events(), facts, {});
    const auto heldUp = [](const TaskGraph& graph) {
        int count = 0;
        for (TaskId task = 0; task < graph.size(); ++task)
            for (const Edge& edge : graph.edgesOf(task))
                count += graph.info[task].kind == TaskKind::host && edge.kind == WaitKind::blocking &&
                                 graph.info[edge.from].kind == TaskKind::copy
                             ? 1
                             : 0;
        return count;
    };
    EXPECT_EQ(tasks.counts.inferredBlocking, 2);
    std::vector<RankTasks> all;
    all.push_back(tasks);
    const ReplayModel model = replay(facts, std::move(all), {0, 1});
    ASSERT_TRUE(model.available()) << model.unavailable;
    EXPECT_EQ(heldUp(model.graph), 2);
    // With few pieces ahead of the device the host itself was late.
    facts::TraceFacts few;
    EXPECT_EQ(rankTasks(fullQueue(few, 100, 1000).events(), few, {}).counts.inferredBlocking, 0);
}

TEST(ReplayJob, ARankThatIsNotRecordedMeansNoReplay) {
    Job job;
    job.facts.communicators[1].size = 3;
    EXPECT_NE(job.play().unavailable.find("not recorded"), std::string::npos);
}

TEST(ReplayJob, KernelsWhosePartnersAreUnknownMeanNoReplay) {
    Job job;
    job.facts.members = {};
    EXPECT_NE(job.play().unavailable.find("not matched"), std::string::npos);
}

TEST(ReplayJob, WorkWithoutLaunchRowsMeansNoReplay) {
    Job job;
    facts::RankEvents events = job.players[0].events();
    for (facts::ComputeTask& task : events.compute) task.correlation = -1;
    EXPECT_NE(rankTasks(events, job.facts).problem.find("no launch row"), std::string::npos);
    events.hostCalls.clear();
    EXPECT_NE(rankTasks(events, job.facts).problem.find("calls of the host are not recorded"), std::string::npos);
}

TEST(ReplayJob, AStreamThatBeganBeforeTheRecordingIsStillItsRanks) {
    Job job;
    for (RankPlayer& player : job.players) player.unlaunchedKernel(990);
    const ReplayModel model = job.play();
    ASSERT_TRUE(model.available()) << model.unavailable;
    for (int rank = 0; rank < 2; ++rank) {
        const TaskId kernel = only(model.graph, TaskKind::kernel, rank, 1);
        ASSERT_NE(kernel, kNoTask) << "rank " << rank;
        EXPECT_EQ(model.graph.durationNs[kernel], rank == 0 ? 100'000 : 160'000);
    }
}

TEST(ReplayJob, OneStepMeansNoReplay) {
    const Job job;
    std::vector<RankTasks> ranks;
    for (const RankPlayer& player : job.players) ranks.push_back(rankTasks(player.events(), job.facts));
    const ReplayModel model = replay(job.facts, std::move(ranks), {1});
    EXPECT_NE(model.unavailable.find("one step"), std::string::npos);
    EXPECT_EQ(model.graph.size(), 0u);
}

}  // namespace
}  // namespace rankscope::replay

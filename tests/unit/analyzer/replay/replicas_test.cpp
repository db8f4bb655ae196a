// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/replay/replay.h"

namespace rankscope::replay {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kStepNs = 1'000'000;

/// `replicas` x `width` ranks, replica by replica. In each step every replica sums over its own ranks, then the ranks
/// of one place sum over all replicas; `lateNs` (by rank) is when each comes there.
class Job {
  public:
    Job(int replicas, int width, std::vector<int64_t> lateNs) : m_replicas(replicas), m_width(width) {
        for (int rank = 0; rank < replicas * width; ++rank) m_facts.ranks.push_back({.rank = rank, .recorded = true});
        for (int replica = 0; replica < replicas; ++replica) group(ranksOf(replica * width, 1, width));
        for (int place = 0; place < width; ++place) group(ranksOf(place, width, replicas));
        lateNs.resize(m_facts.ranks.size());
        for (int step = 0; step < 4; ++step)
            for (auto& [id, communicator] : m_facts.communicators) call(communicator, step, lateNs);
        sort();
    }

    /// One more all-reduce of one replica, which it then is not like the others by.
    void callMore(int replica) {
        call(m_facts.communicators.at(replica + 1), 3, std::vector<int64_t>(m_facts.ranks.size()));
        sort();
    }
    void sendBetween(int from, int to) {
        m_facts.pointToPoint.push_back({.id = 1, .communicatorId = 1, .srcRank = from, .dstRank = to});
    }
    facts::TraceFacts& facts() { return m_facts; }

  private:
    static std::vector<int> ranksOf(int first, int stride, int count) {
        std::vector<int> ranks;
        for (int i = 0; i < count; ++i) ranks.push_back(first + i * stride);
        return ranks;
    }
    void group(std::vector<int> ranks) {
        const auto id = static_cast<int64_t>(m_facts.communicators.size() + 1);
        const auto size = static_cast<int>(ranks.size());
        m_facts.communicators[id] = {.id = id, .size = size, .ranks = std::move(ranks)};
    }
    void call(const facts::Communicator& communicator, int step, const std::vector<int64_t>& lateNs) {
        store::Collective row{.id = static_cast<int64_t>(m_facts.collectives.size() + 1),
                              .communicatorId = communicator.id,
                              .op = store::Op::allReduce};
        row.step = step;
        for (int rank : communicator.ranks) {
            const int64_t ns = step * kStepNs + lateNs[static_cast<size_t>(rank)];
            m_facts.members.push_back({.collectiveId = row.id, .rank = rank, .arrivalNs = ns});
            if (!row.firstArrivalNs || ns < *row.firstArrivalNs) row.firstArrivalNs = ns;
            if (!row.lastArrivalNs || ns > *row.lastArrivalNs) {
                row.lastArrivalNs = ns;
                row.lastRank = rank;
            }
        }
        m_facts.collectives.push_back(row);
    }
    void sort() {
        std::ranges::sort(m_facts.members, {},
                          [](const auto& member) { return std::pair(member.rank, member.collectiveId); });
    }

    int m_replicas, m_width;
    facts::TraceFacts m_facts;
};

TEST(Replicas, MeetInTheCommunicatorsOfOneSize) {
    Job job(6, 2, {});
    const Replicas replicas = findReplicas(job.facts());
    EXPECT_THAT(replicas.ranks, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), ElementsAre(6, 7),
                                            ElementsAre(8, 9), ElementsAre(10, 11)));
    EXPECT_THAT(replicas.shared, ElementsAre(7, 8));
}

TEST(Replicas, MayBeOneRankEach) {
    Job job(5, 1, {});
    EXPECT_THAT(findReplicas(job.facts()).ranks, SizeIs(5));
}

TEST(Replicas, AreNoneWhereOneCallsMoreOften) {
    Job job(6, 1, {});
    job.callMore(4);
    EXPECT_THAT(findReplicas(job.facts()).ranks, IsEmpty());
}

TEST(Replicas, AreNotTornApartByMessages) {
    Job job(6, 1, {});
    job.sendBetween(2, 5);
    EXPECT_THAT(findReplicas(job.facts()).ranks, IsEmpty());  // five groups, one of which has two ranks
}

TEST(Replicas, AreNotLookedForWhereARankIsNotRecorded) {
    Job job(6, 2, {});
    job.facts().ranks[3].recorded = false;
    EXPECT_THAT(findReplicas(job.facts()).ranks, IsEmpty());
}

TEST(ChosenReplicas, AreThoseThatTheOthersWaitFor) {
    std::vector<int64_t> lateNs(16);
    lateNs[5] = 700;   // replica 2
    lateNs[13] = 900;  // replica 6
    Job job(8, 2, lateNs);
    const ReplayedReplicas chosen = chooseReplicas(job.facts(), 0.01);
    EXPECT_EQ(chosen.of, 8);
    EXPECT_EQ(chosen.replayed, 4);
    EXPECT_THAT(chosen.leftOut, SizeIs(8));
    for (int rank : {4, 5, 12, 13}) EXPECT_FALSE(std::ranges::binary_search(chosen.leftOut, rank)) << rank;
    EXPECT_EQ(chosen.lateByOthersNs, 0);
}

TEST(ChosenReplicas, SayWhatIsLostByTheOthers) {
    std::vector<int64_t> lateNs(8, 1000);
    lateNs[0] = lateNs[1] = lateNs[2] = 900;  // five come last, and there is room for four
    Job job(8, 1, lateNs);
    EXPECT_EQ(chooseReplicas(job.facts(), 0.01).lateByOthersNs, 0);
    // Whoever came 300 ns after all of these is none of them.
    for (store::Collective& row : job.facts().collectives)
        if (row.communicatorId == 9) row.lastArrivalNs = *row.lastArrivalNs + 300;
    EXPECT_EQ(chooseReplicas(job.facts(), 0.01).lateByOthersNs, 300);
}

TEST(ChosenReplicas, AreAllWhereTheyAreFew) {
    Job four(4, 2, {}), eight(8, 2, {});
    EXPECT_THAT(chooseReplicas(four.facts(), 0.01).leftOut, IsEmpty());
    EXPECT_THAT(chooseReplicas(eight.facts(), 1).leftOut, IsEmpty());
    EXPECT_THAT(chooseReplicas(eight.facts(), 0.8).leftOut, SizeIs(4));  // six of eight
}

}  // namespace
}  // namespace rankscope::replay

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/replay/replicas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace rankscope::replay {
namespace {

constexpr int64_t kStepNs = 1'000'000;  // so that 0.5 % of it are 5'000
constexpr int kSteps = 5;               // the first is warm-up

/// `replicas` x `width` ranks, replica by replica. In each step every replica sums over its own ranks, then the ranks
/// of one place sum over all replicas; `lateNs` (by rank) is when each comes there.
class Replicated {
  public:
    Replicated(int replicas, int width, std::vector<int64_t> lateNs) {
        for (int rank = 0; rank < replicas * width; ++rank) {
            facts::RankFacts& one = m_facts.ranks.emplace_back();
            one.rank = rank;
            one.recorded = true;
            for (int step = 0; step < kSteps; ++step) one.steps.push_back({step, step * kStepNs, kStepNs, step == 0});
        }
        for (int replica = 0; replica < replicas; ++replica) group(ranksOf(replica * width, 1, width));
        for (int place = 0; place < width; ++place) group(ranksOf(place, width, replicas));
        lateNs.resize(m_facts.ranks.size());
        for (int step = 0; step < kSteps; ++step)
            for (auto& [id, communicator] : m_facts.communicators)
                for (int times = id <= replicas ? 2 : 1; times > 0; --times) call(communicator, step, lateNs);
        sort();
    }

    /// One more all-reduce of one replica in a step.
    void callMore(int replica, int step) {
        call(m_facts.communicators.at(replica + 1), step, std::vector<int64_t>(m_facts.ranks.size()));
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
        row.complete = true;
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
        std::ranges::sort(*m_facts.members.change(), {},
                          [](const auto& member) { return std::pair(member.rank, member.collectiveId); });
    }

    facts::TraceFacts m_facts;
};

TEST(Replicas, MeetInTheCommunicatorsOfOneSize) {
    Replicated job(6, 2, {});
    const Replicas replicas = findReplicas(job.facts());
    EXPECT_EQ(replicas.ranks, (std::vector<std::vector<int>>{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}}));
    EXPECT_EQ(replicas.shared, (std::set<int64_t>{7, 8}));
}

TEST(Replicas, MayBeOneRankEach) {
    Replicated job(5, 1, {});
    EXPECT_EQ(findReplicas(job.facts()).ranks.size(), 5u);
}

TEST(Replicas, AreNoneWhereOneCallsMoreOften) {
    Replicated job(6, 1, {});
    job.callMore(4, 0);
    EXPECT_EQ(findReplicas(job.facts()).ranks.size(), 6u);  // in a step that is not analysed
    job.callMore(4, 3);
    EXPECT_TRUE(findReplicas(job.facts()).ranks.empty());
}

TEST(Replicas, AreNoneWhereARankMeetsOthersTwice) {
    Replicated job(4, 4, {});  // both kinds of groups have four ranks
    EXPECT_TRUE(findReplicas(job.facts()).ranks.empty());
}

TEST(Replicas, MeetByTheGroupsThatAreCalledLeast) {
    Replicated job(2, 6, {});  // taking the others away would leave six
    EXPECT_EQ(findReplicas(job.facts()).ranks.size(), 2u);
}

TEST(Replicas, AreNotTornApartByMessages) {
    Replicated job(6, 1, {});
    job.sendBetween(2, 5);
    EXPECT_TRUE(findReplicas(job.facts()).ranks.empty());  // five groups, one of which has two ranks
}

TEST(Replicas, AreNotLookedForWhereARankIsNotRecorded) {
    Replicated job(6, 2, {});
    job.facts().ranks[3].recorded = false;
    EXPECT_TRUE(findReplicas(job.facts()).ranks.empty());
}

TEST(ChosenReplicas, AreThoseThatTheOthersWaitFor) {
    std::vector<int64_t> lateNs(24);
    lateNs[5] = 700;   // replica 2
    lateNs[13] = 900;  // replica 6
    Replicated job(12, 2, lateNs);
    const ReplayedReplicas chosen = chooseReplicas(job.facts(), 0.01);
    EXPECT_EQ(chosen.of, 12);
    EXPECT_EQ(chosen.replayed, 6);
    EXPECT_EQ(chosen.leftOut.size(), 12u);
    for (int rank : {4, 5, 12, 13}) EXPECT_FALSE(std::ranges::binary_search(chosen.leftOut, rank)) << rank;
    EXPECT_EQ(chosen.lateByOthersNs, 0);
}

TEST(ChosenReplicas, AreNotOnlyLateOnes) {
    std::vector<int64_t> lateNs(16);
    std::fill_n(lateNs.begin(), 8, 1000);
    Replicated job(16, 1, lateNs);
    const std::vector<int> leftOut = chooseReplicas(job.facts(), 0.01).leftOut;
    EXPECT_LT(std::ranges::count_if(leftOut, [](int rank) { return rank >= 8; }), 8);
}

TEST(ChosenReplicas, SayHowMuchLaterTheOthersCome) {
    Replicated job(8, 1, {});
    for (const auto held = job.facts().collectives.change();
         store::Collective & row : *held)  // somebody else came 300 ns after all of these
        if (row.communicatorId == 9) row.lastArrivalNs = *row.lastArrivalNs + 300;
    EXPECT_EQ(chooseReplicas(job.facts(), 0.01).lateByOthersNs, 300);
}

TEST(ChosenReplicas, AreMoreWhereTheOthersAreMissed) {
    // In each step another one of the last ten is later, by more than 0.5 % of a step.
    Replicated job(24, 1, {});
    for (const auto held = job.facts().members.change(); store::CollectiveMember & member : *held) {
        store::Collective& row = job.facts().collectives.own(static_cast<size_t>(member.collectiveId - 1));
        if (row.communicatorId != 25 || member.rank != 10 + 3 * *row.step) continue;
        member.arrivalNs = *member.arrivalNs + 40'000;
        row.lastArrivalNs = *member.arrivalNs;
        row.lastRank = member.rank;
    }
    EXPECT_EQ(chooseReplicas(job.facts(), 0.01).replayed, 6);  // the four are among the latest
    for (const auto held = job.facts().collectives.change(); store::Collective & row : *held)
        if (row.communicatorId == 25) row.lastArrivalNs = *row.lastArrivalNs + 6'000;  // by nobody that is recorded
    EXPECT_TRUE(chooseReplicas(job.facts(), 0.01).leftOut.empty());
}

TEST(ChosenReplicas, AreAllWhereTheyAreFew) {
    Replicated four(4, 2, {}), ten(10, 2, {});
    EXPECT_TRUE(chooseReplicas(four.facts(), 0.01).leftOut.empty());
    EXPECT_TRUE(chooseReplicas(ten.facts(), 1).leftOut.empty());
    EXPECT_EQ(chooseReplicas(ten.facts(), 0.8).leftOut.size(), 4u);  // eight of ten
    EXPECT_TRUE(chooseReplicas(ten.facts(), 0.01, 0.5).leftOut.empty());
}

}  // namespace
}  // namespace rankscope::replay

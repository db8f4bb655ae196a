// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analyzer/job/analysis.h"
#include "analyzer/job/link_probes.h"

namespace rankscope::job {
namespace {

/// Two groups of three experts on one node at 100 bytes/ns, one all-to-all a step: each rank sends `bytes` to each
/// other one.
struct Experts {
    int groups = 2;
    double factor[2] = {1, 1};    // by group: on the time its busiest rank's bytes take
    int64_t toFirst[2] = {0, 0};  // by group: more bytes from each to its first rank
    bool beside = false;          // another kernel beside the second group's

    static constexpr int64_t kBytes = 10'000'000, kStepNs = 10'000'000;

    std::vector<LinkProbe> probes() const {
        Analysis analysis;
        analysis.peaks.intra = costs::LinkClass{100, 5'000};
        for (int rank = 0; rank < 3 * groups; ++rank) {
            facts::RankFacts facts;
            facts.rank = rank;
            facts.hostId = 0;
            analysis.facts.ranks.push_back(facts);
            analysis.ranks.change()->emplace_back().rank = rank;
        }
        for (int group = 0; group < groups; ++group) {
            facts::Communicator communicator;
            communicator.id = group + 1;
            communicator.size = 3;
            communicator.nodes = 1;
            communicator.ranks = {3 * group, 3 * group + 1, 3 * group + 2};
            analysis.facts.communicators[communicator.id] = communicator;
            analysis.layout.uses[communicator.id][store::Op::send] = {facts::CommRole::experts, 1};
        }
        for (int step = 0; step < 5; ++step) {
            analysis.steps.push_back(step);
            for (int group = 0; group < groups; ++group) play(analysis, group, step);
        }
        return exchangeProbes(analysis);
    }

  private:
    void play(Analysis& analysis, int group, int step) const {
        const int64_t startNs = step * kStepNs, busiest = 2 * (kBytes + toFirst[group]);
        const int64_t endNs =
            startNs + static_cast<int64_t>(factor[group] * (5'000 + static_cast<double>(busiest) / 100));
        for (int from = 3 * group; from < 3 * group + 3; ++from) {
            facts::CommTask task;
            task.communicatorId = group + 1;
            task.op = store::Op::send;
            task.step = step;
            task.startNs = startNs;
            task.endNs = endNs;
            std::vector<facts::CommTask>& tasks = analysis.ranks.own(static_cast<size_t>(from)).communication;
            tasks.push_back(task);
            if (beside && group == 1) {
                task.communicatorId = 9;
                tasks.push_back(task);
            }
            for (int to = 3 * group; to < 3 * group + 3; ++to) {
                if (to == from) continue;
                store::P2p row;
                row.communicatorId = group + 1;
                row.srcRank = from;
                row.dstRank = to;
                row.bytes = kBytes + (to == 3 * group ? toFirst[group] : 0);
                row.sendArrivalNs = row.recvArrivalNs = startNs;
                analysis.facts.pointToPoint.push_back(row);
            }
        }
    }
};

TEST(ExchangeProbes, GroupsAreComparedWithTheBestOfTheirClass) {
    Experts job;
    job.factor[0] = 1.4;  // what NCCL loses with messages
    job.factor[1] = 2.8;
    const std::vector<LinkProbe> probes = job.probes();
    ASSERT_EQ(probes.size(), 2u);
    EXPECT_NEAR(probes[0].slowness, 1, 1e-6);
    EXPECT_NEAR(probes[1].slowness, 2, 1e-3);
    EXPECT_TRUE(probes[1].slow());
    EXPECT_EQ(probes[1].ranks, (std::vector<int>{3, 4, 5}));
    EXPECT_NEAR(probes[1].peakBytesPerNs, probes[0].busBytesPerNs, 1e-2);
}

TEST(ExchangeProbes, ABusyExpertIsNoSlowLink) {
    Experts job;
    job.toFirst[1] = 3 * Experts::kBytes;
    const std::vector<LinkProbe> probes = job.probes();
    ASSERT_EQ(probes.size(), 2u);
    EXPECT_NEAR(probes[1].slowness, 1, 1e-3);
}

TEST(ExchangeProbes, AGroupWithoutAnotherToCompareWithIsNone) {
    Experts job;
    job.factor[0] = 3;
    job.groups = 1;
    EXPECT_TRUE(job.probes().empty());
    job.groups = 2;
    job.beside = true;  // the second one shares its link
    EXPECT_TRUE(job.probes().empty());
}

}  // namespace
}  // namespace rankscope::job

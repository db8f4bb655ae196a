// SPDX-License-Identifier: Apache-2.0
// Light recordings on paper, by arrivals: what the others lose to a late rank, and transfers for which nobody waits.
#include "analyzer/diagnose/lost_to_rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "analyzer/diagnose/calls_together.h"
#include "analyzer/diagnose/link_saving.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
namespace {

constexpr double kMs = 1e6;

/// Ranks 0 to 7 compute and call a collective ten times a step.
struct CallingJob {
    int ranks = 8, steps = 8, calls = 10;
    double computeNs = 10 * kMs, transferNs = kMs;
    double noiseNs = 50'000;
    bool standsStill = false;     // behind each collective, as in tensor parallelism; else all compute on
    bool stepsStandStill = true;  // behind the last one of a step
    bool lastIsOutside = false;   // the last collective of a step lies between it and the next one
    int lateRank = 5;
    double factor = 1;    // of its compute
    double lateByNs = 0;  // once a step, at its start

    job::Analysis play() const {
        job::Analysis analysis;
        analysis.facts.meta["light"] = "calls";
        analysis.facts.communicators[1] = {.id = 1, .size = ranks, .ranks = {}};
        for (int r = 0; r < ranks; ++r) {
            analysis.facts.communicators[1].ranks.push_back(r);
            analysis.facts.ranks.emplace_back().rank = r;
            analysis.ranks.change()->emplace_back().rank = r;
        }
        std::vector<double> clocks(static_cast<size_t>(ranks)), ends(static_cast<size_t>(ranks));
        unsigned state = 7;
        for (int step = 0; step < steps; ++step) {
            analysis.steps.push_back(step);
            for (size_t r = 0; r < clocks.size(); ++r)
                analysis.facts.ranks[r].steps.push_back({step, static_cast<int64_t>(clocks[r]), 0, false});
            for (int call = 0; call < calls; ++call) {
                const int64_t id = step * calls + call + 1;
                store::Collective& collective = analysis.facts.collectives.change()->emplace_back();
                collective.id = id;
                collective.communicatorId = 1;
                collective.op = store::Op::allReduce;
                if (!lastIsOutside || call + 1 < calls) collective.step = step;
                std::vector<double> arrivals;
                for (size_t r = 0; r < clocks.size(); ++r) {
                    state = state * 1'664'525 + 1'013'904'223;
                    const bool late = static_cast<int>(r) == lateRank;
                    clocks[r] +=
                        computeNs * (late ? factor : 1) + noiseNs * (static_cast<double>(state >> 16) / 65'536);
                    if (late && call == 0) clocks[r] += lateByNs;
                    arrivals.push_back(std::max(clocks[r], ends[r]));
                }
                const double end = *std::ranges::max_element(arrivals) + transferNs;
                for (size_t r = 0; r < clocks.size(); ++r) {
                    store::CollectiveMember& member = analysis.facts.members.change()->emplace_back();
                    member.collectiveId = id;
                    member.rank = static_cast<int>(r);
                    member.arrivalNs = static_cast<int64_t>(arrivals[r]);
                    member.endNs = static_cast<int64_t>(end);
                    facts::CommTask& task = analysis.ranks.own(r).communication.emplace_back();
                    task.collectiveId = id;
                    task.communicatorId = 1;
                    task.op = store::Op::allReduce;
                    task.step = step;
                    task.startNs = static_cast<int64_t>(arrivals[r]);
                    task.endNs = static_cast<int64_t>(end);
                    task.waitNs = task.endNs - task.startNs - static_cast<int64_t>(transferNs);
                    task.exposedTransferNs = static_cast<int64_t>(transferNs);
                    ends[r] = end;
                    if (standsStill || (stepsStandStill && call + 1 == calls)) clocks[r] = end;
                }
            }
        }
        for (size_t r = 0; r < clocks.size(); ++r) {
            std::vector<facts::StepWindow>& windows = analysis.facts.ranks[r].steps;
            for (size_t s = 0; s < windows.size(); ++s)
                windows[s].durNs = (s + 1 < windows.size() ? windows[s + 1].startNs : static_cast<int64_t>(ends[r])) -
                                   windows[s].startNs;
        }
        return analysis;
    }
};

double lostMs(const job::Analysis& analysis, size_t rank = 5) {
    std::vector<size_t> peers(analysis.ranks.size());
    std::iota(peers.begin(), peers.end(), size_t{0});
    std::erase(peers, rank);
    const std::optional<LostToRank> lost = lostToRank(analysis, rank, peers);
    return lost ? facts::median(lost->perStepNs) / kMs : -1;
}

TEST(LostToRank, WhoComesLateOnceAndStaysSoCostsThatOnce) {
    EXPECT_NEAR(lostMs(CallingJob{.lateByNs = 5 * kMs}.play()), 5, 0.3);
}

TEST(LostToRank, WithWhomAllBeginAnewEachLatenessIsLost) {
    EXPECT_NEAR(lostMs(CallingJob{.standsStill = true, .factor = 1.2}.play()), 20, 0.5);
    EXPECT_NEAR(lostMs(CallingJob{.standsStill = true, .lateByNs = 5 * kMs}.play()), 5, 0.3);
}

TEST(LostToRank, WhoIsSlowAllTheTimeLosesItAlsoWhereThePeersAreTooFarAhead) {
    EXPECT_NEAR(lostMs(CallingJob{.factor = 1.02}.play()), 2, 0.3);  // they never are
    EXPECT_NEAR(lostMs(CallingJob{.factor = 1.2}.play()), 20, 1);    // from the fifth call of a step on
    EXPECT_NEAR(lostMs(CallingJob{.factor = 1.5}.play()), 50, 2);    // from the third one on
}

TEST(LostToRank, AHealthyRankCostsNothing) {
    for (const bool standsStill : {false, true}) {
        const double lost = lostMs(CallingJob{.standsStill = standsStill}.play());
        EXPECT_GE(lost, 0) << "unknown, " << standsStill;
        EXPECT_LT(lost, 0.3) << standsStill;
    }
}

TEST(LostToRank, ACallBetweenTwoStepsHidesNothingOfTheNextOne) {
    EXPECT_NEAR(lostMs(CallingJob{.lastIsOutside = true, .lateByNs = 5 * kMs}.play()), 5, 0.3);
}

// DDP sends the buffers of the model from rank 0 in each forward pass: who is late comes late to that first.
TEST(LostToRank, ABroadcastThatNobodyLeftBeforeTheLastCameTellsLikeAnAllReduce) {
    job::Analysis analysis = CallingJob{.standsStill = true, .lateByNs = 5 * kMs}.play();
    for (size_t i = 0; i < analysis.facts.collectives.size(); i += 10)
        analysis.facts.collectives.own(i).op = store::Op::broadcast;
    EXPECT_NEAR(lostMs(analysis), 5, 0.3);
    for (const auto held = analysis.facts.members.change(); store::CollectiveMember & member : *held)
        if ((member.collectiveId - 1) % 10 == 0 && member.rank == 0) member.endNs = *member.arrivalNs + 1000;
    EXPECT_LT(lostMs(analysis), 0.3) << "its root went on: how long the others waited is not told";
    EXPECT_EQ(callsTogether(analysis, 1).size(), 8u * 9);
}

TEST(LostToRank, WithoutNoiseTheSmallerLossIsTold) {
    EXPECT_NEAR(lostMs(CallingJob{.noiseNs = 0, .standsStill = true, .factor = 1.2}.play()), 2, 0.1);
    EXPECT_NEAR(lostMs(CallingJob{.noiseNs = 0, .factor = 1.02}.play()), 2, 0.1);
}

TEST(LostToRank, WhereThePeersAreAlwaysTooFarAheadItIsUnknown) {
    EXPECT_EQ(lostMs(CallingJob{.stepsStandStill = false, .factor = 1.5}.play()), -1);
    const job::Analysis analysis = CallingJob{.factor = 1.2}.play();
    EXPECT_FALSE(lostToRank(analysis, 5, {0, 1, 2})) << "the group has members that are no peers";
}

double savedMs(const CallingJob& job) {
    const job::Analysis analysis = job.play();
    job::LinkProbe probe;
    probe.communicatorId = 1;
    probe.slowness = 2;
    return facts::median(savingAtPeak(analysis, {&probe})) / kMs;
}

TEST(SavingAtPeak, ByCallsATransferThatNobodyWaitsForCostsNothing) {
    EXPECT_NEAR(savedMs({}), 0.5, 0.01) << "the last one of the step";
    EXPECT_NEAR(savedMs({.standsStill = true}), 5, 0.01);
    EXPECT_NEAR(savedMs({.computeNs = 0.5 * kMs}), 5, 0.01) << "each holds up the next one";
}

}  // namespace
}  // namespace rankscope::diagnose

// SPDX-License-Identifier: Apache-2.0
// Light recordings on paper: how much of each step a rank spends outside of communication, and whom it meets.
#include "analyzer/diagnose/late_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "analyzer/diagnose/detect.h"
#include "analyzer/job/light_recording.h"

namespace rankscope::diagnose {
namespace {

constexpr int kLightSteps = 10;
constexpr int64_t kLightStepNs = 100'000'000;

class LightJob {
  public:
    /// `ownShare`: of step s of rank r, what is no communication.
    LightJob(int ranks, const std::function<double(int r, int s)>& ownShare) {
        m_analysis.facts.meta["light"] = "1";
        m_analysis.stepNs = kLightStepNs;
        for (int s = 0; s < kLightSteps; ++s) m_analysis.steps.push_back(s);
        for (int r = 0; r < ranks; ++r) {
            facts::RankFacts& known = m_analysis.facts.ranks.emplace_back();
            known.rank = r;
            known.recorded = true;
            known.hostId = r / 4;
            known.host = "node" + std::to_string(r / 4);
            facts::RankSummary& summary = m_analysis.ranks.change()->emplace_back();
            summary.rank = r;
            for (int s = 0; s < kLightSteps; ++s) {
                known.steps.push_back({s, s * kLightStepNs, kLightStepNs, false});
                facts::Attribution& step = summary.steps.emplace_back();
                step.stepNs = kLightStepNs;
                step.idleNs = static_cast<int64_t>(ownShare(r, s) * kLightStepNs);
                step.exposedWaitNs = kLightStepNs - step.idleNs;
            }
        }
    }

    LightJob& group(int64_t id, const std::vector<int>& ranks) {
        m_analysis.facts.communicators[id] = {.id = id, .size = static_cast<int>(ranks.size()), .ranks = ranks};
        for (const int rank : ranks)
            for (int s = 0; s < kLightSteps; ++s) {
                facts::CommTask& task = m_analysis.ranks.own(static_cast<size_t>(rank)).communication.emplace_back();
                task.communicatorId = id;
                task.op = store::Op::allReduce;
                task.step = s;
            }
        return *this;
    }

    /// All wait for so much of a step longer in step s.
    LightJob& longer(const std::function<double(int s)>& byShare) {
        for (const auto held = m_analysis.ranks.change(); facts::RankSummary & rank : *held)
            for (int s = 0; s < kLightSteps; ++s) {
                const auto moreNs = static_cast<int64_t>(byShare(s) * kLightStepNs);
                rank.steps[static_cast<size_t>(s)].stepNs += moreNs;
                rank.steps[static_cast<size_t>(s)].exposedWaitNs += moreNs;
            }
        return *this;
    }

    LightJob& message(int from, int to) {
        store::P2p& row = m_analysis.facts.pointToPoint.change()->emplace_back();
        row.srcRank = from;
        row.dstRank = to;
        return *this;
    }

    LightJob& task(store::Op op, int rank, int64_t startNs, int64_t endNs) {
        facts::CommTask& task = m_analysis.ranks.own(static_cast<size_t>(rank)).communication.emplace_back();
        task.communicatorId = 1;
        task.op = op;
        task.step = 0;
        task.startNs = startNs;
        task.endNs = endNs;
        return *this;
    }

    std::vector<int> late() const {
        std::vector<int> ranks;
        for (const LateRank& one : lateRanks(m_analysis)) ranks.push_back(m_analysis.ranks[one.index].rank);
        return ranks;
    }

    job::Analysis& analysis() { return m_analysis; }

  private:
    job::Analysis m_analysis;
};

std::vector<int> all(int ranks) {
    std::vector<int> list;
    for (int rank = 0; rank < ranks; ++rank) list.push_back(rank);
    return list;
}

std::function<double(int, int)> slow(int rank, double by) {
    return [=](int r, int) { return 0.4 + (r == rank ? by : 0); };
}

TEST(LateRanks, TheRankThatTheOthersWaitForInEachStepIsNamed) {
    LightJob job(8, slow(5, 0.2));
    job.group(1, all(8));
    EXPECT_EQ(job.late(), std::vector<int>{5});
    const auto findings = detect(job.analysis());
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].id, "RS301");
    EXPECT_EQ(findings[0].alternatives, std::vector<std::string>{"RS304"});
    EXPECT_EQ(findings[0].title, "straggler rank, or uneven work (RS304)");
    EXPECT_EQ(findings[0].ranks, std::vector<int>{5});
    EXPECT_NEAR(findings[0].costNs, 0.2 * kLightStepNs, 1e-3 * kLightStepNs);
    EXPECT_NE(findings[0].cause.find("1.50x"), std::string::npos) << findings[0].cause;
}

TEST(LateRanks, JustUnderTheThresholdAndInTooFewStepsIsNobody) {
    EXPECT_EQ(LightJob(8, slow(5, 0.051)).group(1, all(8)).late(), std::vector<int>{5});
    EXPECT_TRUE(LightJob(8, slow(5, 0.049)).group(1, all(8)).late().empty());
    const auto often = [](int steps) { return [=](int r, int s) { return 0.4 + (r == 5 && s < steps ? 0.2 : 0); }; };
    EXPECT_EQ(LightJob(8, often(9)).group(1, all(8)).late(), std::vector<int>{5});
    EXPECT_TRUE(LightJob(8, often(8)).group(1, all(8)).late().empty());
}

TEST(LateRanks, AHealthyJobWhoseLastRankIsAnotherInEachStepHasNone) {
    EXPECT_TRUE(
        LightJob(8, [](int r, int s) { return 0.3 + ((r * 7 + s * 3) % 8) * 0.03; }).group(1, all(8)).late().empty());
    EXPECT_TRUE(LightJob(1, slow(0, 0.5)).late().empty());
}

TEST(LateRanks, WhoWaitsForALaterMateInAGroupOfTheirOwnIsLeftOut) {
    const auto pair = [](int r, int) { return 0.3 + (r == 5 ? 0.35 : r == 4 ? 0.13 : 0); };
    EXPECT_EQ(LightJob(8, pair).group(1, all(8)).late(), (std::vector<int>{4, 5}));
    EXPECT_EQ(LightJob(8, pair).group(1, all(8)).group(2, {4, 5}).late(), std::vector<int>{5});
    // Two that are equally late in it are both.
    EXPECT_EQ(
        LightJob(8, [](int r, int) { return 0.3 + (r / 2 == 2 ? 0.3 : 0); }).group(1, all(8)).group(2, {4, 5}).late(),
        (std::vector<int>{4, 5}));
}

TEST(LateRanks, WhoBecomesLateHalfwayIsToldWithTheStepAndCostsTheStepsSince) {
    LightJob job(8, [](int r, int s) { return 0.4 + 0.001 * ((r + s) % 3) + (r == 5 && s >= 5 ? 0.2 : 0); });
    job.group(1, all(8));
    // Behind a single stall: in steps that take as long as before the others only wait where they idled.
    EXPECT_TRUE(job.late().empty());
    job.longer([](int s) { return s >= 5 ? 0.2 : 0; });
    EXPECT_EQ(job.late(), std::vector<int>{5});
    const auto findings = detect(job.analysis());
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].id, "RS301");
    EXPECT_EQ(findings[0].steps, (std::vector<int>{5, 6, 7, 8, 9}));
    EXPECT_NEAR(findings[0].costNs, 0.2 * kLightStepNs, 0.005 * kLightStepNs);
    EXPECT_GT(findings[0].meanStepNs, 0);
    EXPECT_NE(findings[0].cause.find("in each step from step 5 on (1.00x before)"), std::string::npos)
        << findings[0].cause;
}

TEST(LateRanks, WhoBecomesLaterStepByStepIsToldToGrow) {
    LightJob job(8, [](int r, int s) { return 0.4 + 0.001 * ((r + s) % 3) + (r == 5 ? 0.03 * s : 0); });
    job.group(1, all(8)).longer([](int s) { return 0.03 * s; });
    const auto findings = detect(job.analysis());
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].ranks, std::vector<int>{5});
    EXPECT_NE(findings[0].cause.find("more and more from step 1 on (growing from 1.00x to"), std::string::npos)
        << findings[0].cause;
}

TEST(LateRanks, AHostThatBecomesLateHalfwayIsOneFindingAndRanksAtOtherTimesAreTheirOwn) {
    const auto host = [](int apart) {
        return [=](int r, int s) {
            return 0.4 + 0.001 * ((r + s) % 3) + (r / 4 == 2 && s >= 4 + (r == 9 ? apart : 0) ? 0.2 : 0);
        };
    };
    LightJob together(12, host(0)), apart(12, host(2));
    for (LightJob* job : {&together, &apart}) job->longer([](int s) { return s >= 4 ? 0.2 : 0; });
    const auto one = detect(together.group(1, all(12)).analysis());
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(one[0].id, "RS302");
    EXPECT_EQ(one[0].alternatives, std::vector<std::string>{"RS304"});
    EXPECT_NE(one[0].cause.find("from step 4 on"), std::string::npos) << one[0].cause;
    const auto several = detect(apart.group(1, all(12)).analysis());
    ASSERT_EQ(several.size(), 4u);
    for (const job::Finding& finding : several) EXPECT_EQ(finding.id, "RS301");
}

TEST(LateRanks, StagesOfAPipelineAreComparedWithTheirReplicasOrWithoutAnyWithEachOther) {
    const auto stages = [](int r, int) { return r < 2 ? 0.7 : 0.3; };  // the first stage has more to do
    LightJob alone(3, [](int r, int) { return r == 0 ? 0.7 : 0.3; });
    alone.group(1, all(3)).message(0, 1).message(1, 2);
    EXPECT_EQ(alone.late(), std::vector<int>{0});
    EXPECT_EQ(withoutPeersByCalls(alone.analysis()), "");
    const auto findings = detect(alone.analysis());
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].id, "RS301");
    EXPECT_EQ(findings[0].alternatives, std::vector<std::string>{"RS102"});
    // Of what is sent in the middle of another message, or right behind one, the compute was beside that.
    constexpr int64_t kMs = 1'000'000;
    for (const int64_t sendNs : {5 * kMs, 10 * kMs}) {
        LightJob beside = alone;
        beside.task(store::Op::recv, 1, 0, 10 * kMs).task(store::Op::send, 1, sendNs, 12 * kMs);
        EXPECT_TRUE(beside.late().empty());
        EXPECT_NE(withoutPeersByCalls(beside.analysis()).find("compute beside their messages"), std::string::npos);
    }
    LightJob behind = alone;
    behind.task(store::Op::recv, 1, 0, 10 * kMs).task(store::Op::send, 1, 11 * kMs, 12 * kMs);
    EXPECT_EQ(behind.late(), std::vector<int>{0});
    LightJob grouped(3, [](int r, int) { return r == 0 ? 0.7 : 0.3; });
    grouped.group(1, all(3))
        .message(0, 1)
        .message(1, 2)
        .task(store::Op::recv, 1, 0, 10)
        .task(store::Op::send, 1, 0, 10);
    EXPECT_EQ(grouped.late(), std::vector<int>{0});
    LightJob replicated(4, stages);
    replicated.group(1, all(4)).group(2, {0, 1}).group(3, {2, 3}).message(0, 2).message(1, 3);
    EXPECT_TRUE(replicated.late().empty());
    EXPECT_EQ(withoutPeersByCalls(replicated.analysis()), "");
    LightJob one(4, [&](int r, int s) { return stages(r, s) + (r == 3 ? 0.2 : 0); });
    one.group(1, all(4)).group(2, {0, 1}).group(3, {2, 3}).message(0, 2).message(1, 3);
    EXPECT_EQ(one.late(), std::vector<int>{3});
}

TEST(LateRanks, AWholeHostIsOneFindingAndWithKernelsNobodyIsJudgedSo) {
    LightJob job(12, [](int r, int) { return 0.3 + (r / 4 == 2 ? 0.3 + 0.01 * r : 0); });
    job.group(1, all(12));
    const auto findings = detect(job.analysis());
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].id, "RS302");
    EXPECT_EQ(findings[0].ranks, (std::vector<int>{8, 9, 10, 11}));
    EXPECT_TRUE(isByCalls(job.analysis()));
    job.analysis().facts.meta.clear();
    EXPECT_FALSE(isByCalls(job.analysis()));
}

TEST(LateRanks, WhoWaitsLessBesideItsComputeInAStepThatTakesNoLongerHasNotStalled) {
    LightJob job(4, [](int r, int s) { return r == s || r == s - 4 ? 0.6 : 0.3 + 0.001 * (s % 3); });
    job.group(1, all(4));
    EXPECT_TRUE(detect(job.analysis()).empty()) << "all steps are equally long";
}

TEST(LateRanks, WhatNeedsKernelsSaysSo) {
    LightJob job(8, slow(5, 0.2));
    job.group(1, all(8));
    std::vector<std::string> silent;
    for (const NotJudged& one : notJudged(job.analysis()))
        if (one.needs == "no kernels were recorded: light mode") silent.push_back(one.id);
    EXPECT_NE(std::ranges::find(silent, "RS201"), silent.end());
    EXPECT_NE(std::ranges::find(silent, "RS403"), silent.end());
    for (const char* judged : {"RS208", "RS301", "RS302", "RS303", "RS501"})
        EXPECT_EQ(std::ranges::find(silent, judged), silent.end()) << judged;
}

/// Why slower kernels are not judged in a light job of which all ranks' steps take `times` as long from step 5 on.
std::string whySlowerKernelsAreOpen(double times) {
    LightJob job(4, [](int, int) { return 0.5; });
    job.group(1, all(4));
    for (const auto held = job.analysis().ranks.change(); facts::RankSummary & rank : *held)
        for (int s = 0; s < kLightSteps; ++s)
            rank.steps[static_cast<size_t>(s)].stepNs =
                static_cast<int64_t>((s < 5 ? 1 : times) * kLightStepNs * (1 + 0.001 * (s % 3)));
    for (const NotJudged& one : notJudged(job.analysis()))
        if (one.id == "RS305") return one.needs;
    return "judged";
}

TEST(LateRanks, StepsThatBecameLongerAreToldWhereOnlyKernelsWouldTellWhy) {
    EXPECT_EQ(whySlowerKernelsAreOpen(1.3),
              "no kernels were recorded: light mode; the steps take 1.30x as long since step 5, and only kernels tell "
              "whether they are why");
    EXPECT_EQ(whySlowerKernelsAreOpen(1), "no kernels were recorded: light mode");
}

}  // namespace
}  // namespace rankscope::diagnose

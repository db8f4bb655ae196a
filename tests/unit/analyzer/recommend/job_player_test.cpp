// SPDX-License-Identifier: Apache-2.0
// Changes on top of each other, and what is played for them.
#include "analyzer/recommend/job_player.h"

#include <gtest/gtest.h>

#include "tests/unit/analyzer/small_job.h"

namespace rankscope::recommend {
namespace {

const std::string kFaster = "speed:ranks=1,factor=2", kOtherFaster = "speed:ranks=0,factor=3";

/// A judge that counts what it plays.
struct Counted {
    job::Analysis analysis = test::SmallJob{.reductions = 4}.analysis();
    int played = 0;
    PlayedJob job{analysis, 0, {2, [this] { ++played; }}};
};

/// What a change of all transfers makes of the job, by name.
TransferChange timesAsLong(double factor) {
    const TransferScale scale = [factor](const MessageKey&) { return factor; };
    return {std::to_string(factor), [scale](const MessageList&) { return TransferScales{scale, scale, scale}; }};
}

TEST(PlayedJob, ChangesOnTopOfOthersGainWhatTheWhatIfSays) {
    Counted counted;
    const auto first = counted.job.with({{kFaster}, {}});
    ASSERT_TRUE(first);
    const auto both = first->with({{kOtherFaster}, {}});
    ASSERT_TRUE(both);
    edits::ChangedJob job = edits::unchangedJob(counted.analysis);
    edits::change(job, *edits::parseEdit(kFaster), counted.analysis);
    EXPECT_EQ(first->steps().expected, job.stepsNs);
    edits::change(job, *edits::parseEdit(kOtherFaster), counted.analysis);
    EXPECT_EQ(both->steps().expected, job.stepsNs);
}

TEST(PlayedJob, WhatWasPlayedIsNotPlayedAgain) {
    Counted counted;
    const auto first = counted.job.expectedGains({kFaster}).front();
    ASSERT_TRUE(first);
    EXPECT_EQ(counted.played, 1);
    EXPECT_EQ(counted.job.gainBy(kFaster)->savingNs.expected, *first);
    EXPECT_EQ(edits::gainOf(counted.job.steps(), counted.job.with({{kFaster}, {}})->steps()).savingNs.expected, *first);
    EXPECT_EQ(counted.played, 1);
}

TEST(PlayedJob, ChangesThatArePlayedBesideEachOtherGainWhatEachDoesAlone) {
    std::vector<std::string> changes;
    for (int factor = 2; factor < 10; ++factor) changes.push_back("speed:ranks=1,factor=" + std::to_string(factor));
    const std::vector<std::optional<double>> gains = Counted().job.expectedGains(changes);
    ASSERT_EQ(gains.size(), changes.size());
    for (size_t i = 0; i < changes.size(); ++i)
        EXPECT_EQ(gains[i], Counted().job.gainBy(changes[i])->savingNs.expected);
}

TEST(PlayedJob, TransfersAreScaledInTheJobAsOtherChangesLeaveIt) {
    Counted counted;
    const double meanNs =
        edits::saving(counted.job.with({{}, timesAsLong(2)})->steps().expected, counted.job.steps().expected).expected;
    EXPECT_DOUBLE_EQ(meanNs, 4 * 30) << "four reductions of 30 ns a step";
    const auto faster = counted.job.with({{kFaster}, {}});
    const auto both = faster->with({{}, timesAsLong(2)});
    ASSERT_TRUE(both);
    EXPECT_DOUBLE_EQ(edits::saving(both->steps().expected, faster->steps().expected).expected, 4 * 30);
    EXPECT_FALSE(both->with({{}, timesAsLong(3)})) << "a second choice of NCCL's";
    // The other choice is not taken for the first one.
    EXPECT_DOUBLE_EQ(
        edits::saving(counted.job.with({{}, timesAsLong(3)})->steps().expected, counted.job.steps().expected).expected,
        4 * 60);
}

TEST(PlayedJob, WhatCannotBeMadeIsNothing) {
    Counted counted;
    EXPECT_FALSE(counted.job.expectedGains({"buckets:mb=25"}).front());
    EXPECT_FALSE(counted.job.gainBy("buckets:mb=25"));
    EXPECT_FALSE(counted.job.with({{"buckets:mb=25"}, {}}));
}

}  // namespace
}  // namespace rankscope::recommend

// SPDX-License-Identifier: Apache-2.0
// Changes on top of each other, and what is played for them.
#include "analyzer/recommend/job_player.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "collector/team/packing.h"
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

/// Another process, as far as what goes there and comes back shows.
class OtherProcess : public TrialHelpers {
  public:
    explicit OtherProcess(const job::Analysis& analysis) : m_player(analysis, {1, {}}) {}
    void share(const std::function<std::optional<size_t>()>& next, const std::function<Trial(size_t number)>& trialOf,
               const std::function<void(size_t number, std::optional<PlayedTrial>)>& take) override {
        while (const auto number = next()) {
            ++played;
            const Trial trial = sent(trialOf(*number));
            const PlayedTrial* answer = m_player.play(trial.base, {trial.edits, trial.outlook}, {});
            take(*number, answer ? std::optional(sent(*answer)) : std::nullopt);
        }
    }
    std::atomic<int> played{0};

  private:
    template <typename Value>
    static Value sent(const Value& value) {
        const std::string bytes = team::Packer()(value).take();
        return team::Unpacker(bytes, "another process").get<Value>();
    }
    JobPlayer m_player;
};

TEST(PlayedJob, WhatOtherProcessesPlayIsWhatThisOnePlays) {
    Counted alone;
    OtherProcess other(alone.analysis);
    int here = 0;
    const auto countHere = [&] {  // and leave the other one something
        ++here;
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (other.played == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    };
    const PlayedJob helped(alone.analysis, 0, {1, countHere, &other});
    std::vector<std::string> changes{"buckets:mb=25"};  // cannot be made
    for (int factor = 2; factor < 40; ++factor) changes.push_back("speed:ranks=1,factor=" + std::to_string(factor));
    helped.playAhead(changes);
    const int ahead = here + other.played;
    EXPECT_GT(other.played, 0);
    EXPECT_GE(ahead, std::ssize(changes) - 1);
    for (const std::string& change : changes) {
        const auto gain = helped.gainBy(change), expected = alone.job.gainBy(change);
        ASSERT_EQ(gain.has_value(), expected.has_value()) << change;
        if (!gain) continue;
        EXPECT_EQ(gain->savingNs.expected, expected->savingNs.expected);
        EXPECT_EQ(gain->savingNs.low, expected->savingNs.low);
    }
    EXPECT_EQ(here + other.played, ahead) << "played ahead, and not again";
    const auto onTop = helped.with({{kOtherFaster}, {}}), onTopAlone = alone.job.with({{kOtherFaster}, {}});
    EXPECT_EQ(onTop->expectedGains(changes), onTopAlone->expectedGains(changes));
    const int before = alone.played;
    alone.job.playAhead({"speed:ranks=1,factor=50"});
    EXPECT_EQ(alone.played, before) << "nobody helps";
}

/// Everything that a trial says comes back as it was.
TEST(PlayedJob, AnAnswerOfAnotherProcessIsWhole) {
    PlayedTrial played{edits::sidesOf({1.5, 2.5}), {}};
    played.sides.pessimistic = {3};
    played.sides.outlooks[edits::Outlook::dear] = {4, 5};
    played.sides.unplayable = true;
    played.sides.chanceNs = 6;
    edits::EditEffect& effect = played.effect;
    effect.outlook = edits::Outlook::cheap;
    effect.open = effect.hostMaySlow = true;
    effect.chanceNs = 7;
    effect.assume("as it is");
    effect.tokens = 8;
    effect.replicas = 9;
    effect.played = edits::PlayedSteps{{2, 3}, 10};
    effect.communicators[4] = {4, "c", "i", 2, 1, 1, {0, 1}};
    effect.hosts[1] = 11;
    effect.pipeline = facts::Pipeline{{0, 2}, 12, 2, "interleaved", 0.5};
    effect.dataParallel = 13;
    effect.stageLayers = {{0.5, 0.5}, {1}};
    const std::string bytes = team::Packer()(played).take();
    const auto back = team::Unpacker(bytes, "another process").get<PlayedTrial>();
    EXPECT_EQ(team::Packer()(back).take(), bytes);
    EXPECT_EQ(back.sides.expected, (std::vector<double>{1.5, 2.5}));
    EXPECT_EQ(back.sides.outlooks, played.sides.outlooks);
    EXPECT_EQ(back.effect.pipeline->schedule, "interleaved");
    EXPECT_EQ(back.effect.communicators.at(4).ranks, (std::vector<int>{0, 1}));
    EXPECT_EQ(back.effect.stageLayers, effect.stageLayers);
    EXPECT_EQ(back.effect.dataParallel, 13);
    EXPECT_EQ(back.effect.played->steps, (std::vector<int>{2, 3}));
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

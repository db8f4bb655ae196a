// SPDX-License-Identifier: Apache-2.0
// What a comparison claims of step times, against tables and against drawn noise.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "analyzer/compare/changes.h"
#include "analyzer/compare/distributions.h"
#include "analyzer/compare/run_statistics.h"
#include "analyzer/compare/step_time.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::compare {
namespace {

/// The same numbers on every machine.
class Dice {
  public:
    explicit Dice(uint64_t seed) : m_state(seed) {}
    double uniform() {
        m_state += 0x9e3779b97f4a7c15u;
        uint64_t z = m_state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
    }
    double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979 * uniform()); }

  private:
    uint64_t m_state;
};

ComparedRun makeSample(const std::string& name, const std::vector<double>& stepsNs) {
    ComparedRun run;
    run.name = name;
    run.stepsNs = stepsNs;
    return run;
}

/// Runs of `steps` steps around 10 ms: they differ by `between`, their steps by `within`.
std::vector<ComparedRun> drawRuns(Dice& dice, int runs, int steps, double between, double within, double factor = 1) {
    std::vector<ComparedRun> samples;
    for (int run = 0; run < runs; ++run) {
        ComparedRun sample = makeSample(std::to_string(run), {});
        const double typical = 10e6 * factor * (1 + between * dice.normal());
        for (int step = 0; step < steps; ++step) sample.stepsNs.push_back(typical * (1 + within * dice.normal()));
        samples.push_back(sample);
    }
    return samples;
}

std::vector<ComparedRun> runsOf(std::initializer_list<std::vector<double>> runs) {
    std::vector<ComparedRun> samples;
    for (const std::vector<double>& steps : runs) samples.push_back(makeSample(std::to_string(samples.size()), steps));
    return samples;
}

TEST(Distributions, QuantilesAreThoseOfTheTables) {
    EXPECT_NEAR(kPowerQuantile, 1.281552, 1e-6);
    EXPECT_NEAR(chiSquaredQuantile(0.01, 4), 0.297109, 1e-6);
    EXPECT_NEAR(chiSquaredQuantile(0.01, 1), 0.000157088, 1e-9);
    EXPECT_NEAR(chiSquaredQuantile(0.95, 10), 18.30704, 1e-5);
    EXPECT_NEAR(chiSquaredQuantile(0.01, 100), 70.0649, 1e-4);
    EXPECT_NEAR(facts::studentTwoSided(0.95, 4), 2.776445, 1e-5);
    EXPECT_NEAR(facts::studentTwoSided(0.95, 1), 12.70620, 1e-4);
    EXPECT_NEAR(facts::studentTwoSided(0.95, 7.5), 2.33346, 1e-3);  // between those of 7 (2.3646) and 8 (2.3060)
    EXPECT_NEAR(facts::studentOutside(2.776445, 4), 0.05, 1e-6);
    EXPECT_NEAR(facts::studentOutside(0, 3), 1, 1e-12);
    EXPECT_NEAR(varianceRatioOutside(19.0, 2, 2), 0.05, 1e-6);
    EXPECT_NEAR(varianceRatioOutside(3.70827, 3, 10), 0.05, 1e-6);
    EXPECT_NEAR(varianceRatioOutside(8.78553, 10, 3), 0.05, 1e-6);
}

TEST(RankTest, IsExact) {
    EXPECT_NEAR(rankTestP({1, 2, 3, 4}, {5, 6, 7, 8}), 2.0 / 70, 1e-12);
    EXPECT_NEAR(rankTestP({1, 2, 3}, {4, 5, 6}), 0.1, 1e-12);
    EXPECT_NEAR(rankTestP({1, 2, 3, 5}, {4, 6, 7, 8}), 4.0 / 70, 1e-12);
    EXPECT_NEAR(rankTestP({1, 1, 1, 1}, {1, 1, 1, 1}), 1, 1e-12);
    EXPECT_NEAR(rankTestP({1, 8}, {2, 3, 4, 5, 6, 7}), 1, 1e-12);
    EXPECT_NEAR(smallestRankTestP(4, 4), 2.0 / 70, 1e-12);
    EXPECT_EQ(rankTestP({}, {1, 2}), 1);
}

TEST(RankTest, ManyValuesTakeTheNormalApproximation) {
    const auto p = [](int n, double shift) {
        std::vector<double> a, b;
        for (int i = 0; i < n; ++i) {
            a.push_back(i);
            b.push_back(i + shift);
        }
        return rankTestP(a, b);
    };
    EXPECT_NEAR(p(31, 4.5), 0.069141, 0.0005);  // counted out
    EXPECT_LT(p(30, 30), 1e-15);                // thirty against thirty is still exact: 2 of 60 over 30
    EXPECT_LT(p(400, 100.5), 1e-6);
    EXPECT_NEAR(rankTestP(std::vector<double>(40, 1), std::vector<double>(40, 1)), 1, 1e-12);
}

TEST(StepTimes, BlockMeansAreComparedWithMeans) {
    std::vector<double> steps(40, 10e6);
    steps[7] = 30e6;  // trimmed away, unless the other side holds means over two steps
    EXPECT_EQ(compareStepTimes({makeSample("a", steps)}, {makeSample("b", steps)}, {}).estimator, "trimmed mean");
    ComparedRun ofMeans = makeSample("b", steps);
    ofMeans.stepsPerSample = 2;
    EXPECT_EQ(compareStepTimes({makeSample("a", steps)}, {ofMeans}, {}).estimator, "mean");
}

TEST(Holm, CorrectsForTheNumberOfTests) {
    const std::vector<double> corrected = holm({0.01, std::nan(""), 0.04, 0.03});
    EXPECT_NEAR(corrected[0], 0.03, 1e-12);
    EXPECT_TRUE(std::isnan(corrected[1]));
    EXPECT_NEAR(corrected[2], 0.06, 1e-12);  // not less than that of a smaller p value
    EXPECT_NEAR(corrected[3], 0.06, 1e-12);
}

TEST(RunStatistics, OneSlowStepDoesNotMoveATypicalStep) {
    std::vector<double> steps(20, 10e6);
    steps[7] = 110e6;
    EXPECT_NEAR(locate(steps, StepEstimator::trimmedMean).value, 10e6, 1);
    EXPECT_NEAR(locate(steps, StepEstimator::mean).value, 15e6, 1);
    EXPECT_FALSE(findModes(steps));
}

TEST(RunStatistics, TwoKindsOfStepsAreSeen) {
    std::vector<double> steps;
    for (int i = 0; i < 20; ++i) steps.push_back((i % 5 < 3 ? 7.7e6 : 9.7e6) + 1e4 * (i % 3));
    const auto modes = findModes(steps);
    ASSERT_TRUE(modes);
    EXPECT_NEAR(modes->low, 7.71e6, 0.02e6);
    EXPECT_NEAR(modes->high, 9.71e6, 0.02e6);
    EXPECT_NEAR(modes->highShare, 0.4, 1e-9);
}

TEST(RunStatistics, NoiseOfOneKindIsNotTwo) {
    Dice dice(3);
    int seen = 0;
    for (int i = 0; i < 500; ++i) seen += findModes(drawRuns(dice, 1, 20, 0, 0.03)[0].stepsNs).has_value();
    EXPECT_LE(seen, 1);
}

TEST(RunStatistics, NeighboursThatAreAlikeSayLess) {
    Dice dice(5);
    std::vector<double> drifting;
    double level = 0;
    for (int i = 0; i < 100; ++i) {
        level = 0.95 * level + dice.normal();
        drifting.push_back(10e6 * (1 + 0.01 * level));
    }
    std::vector<double> shuffled = drifting;
    for (size_t i = shuffled.size() - 1; i > 0; --i)
        std::swap(shuffled[i], shuffled[static_cast<size_t>(dice.uniform() * static_cast<double>(i + 1))]);
    EXPECT_GT(locate(drifting, StepEstimator::mean).error, 1.8 * locate(shuffled, StepEstimator::mean).error);
}

TEST(StepTime, OneRunASideNeverClaims) {
    const StepTimeChange change =
        compareStepTimes(runsOf({std::vector<double>(50, 10e6)}), runsOf({std::vector<double>(50, 20e6)}), {});
    EXPECT_EQ(change.verdict, StepVerdict::notEnoughSamples);
    EXPECT_FALSE(change.interval);
    EXPECT_FALSE(change.smallestVisible);
    EXPECT_EQ(change.moreRuns, 2);
    EXPECT_EQ(change.noiseSource, "none");
    EXPECT_NEAR(*change.ratio, 2, 1e-12);
}

TEST(StepTime, OneNewRunTakesItsNoiseFromTheBase) {
    Dice dice(7);
    const auto base = drawRuns(dice, 6, 20, 0.005, 0.01);
    EXPECT_EQ(compareStepTimes(base, drawRuns(dice, 1, 20, 0.005, 0.01, 1.1), {}).verdict, StepVerdict::regression);
    EXPECT_EQ(compareStepTimes(base, drawRuns(dice, 1, 20, 0.005, 0.01, 0.9), {}).verdict, StepVerdict::improvement);
    const StepTimeChange same = compareStepTimes(base, drawRuns(dice, 1, 20, 0.005, 0.01), {});
    EXPECT_TRUE(same.verdict == StepVerdict::noChange || same.verdict == StepVerdict::notEnoughSamples);
    EXPECT_EQ(same.noiseSource, "runs of the base");
}

TEST(StepTime, ManyStepsOfARunAreNoSubstituteForRuns) {
    // Runs differ by 2 %, their steps hardly: 3 x 500 steps a side look sure, and are not.
    Dice dice(11);
    int claimed = 0;
    for (int i = 0; i < 200; ++i) {
        const auto base = drawRuns(dice, 3, 60, 0.02, 0.001), now = drawRuns(dice, 3, 60, 0.02, 0.001);
        const StepTimeChange change = compareStepTimes(base, now, {});
        claimed += change.verdict == StepVerdict::regression;
    }
    EXPECT_LE(claimed, 11);  // 2.5 % by construction: 5 expected, 11 is under three standard deviations above
}

TEST(StepTime, WhatIsSaidToBeVisibleIsFound) {
    Dice dice(13);
    int above = 0, found = 0, covered = 0, all = 0;
    for (const double effect : {0.01, 0.02, 0.03, 0.05, 0.1}) {
        for (int i = 0; i < 100; ++i) {
            const auto base = drawRuns(dice, 3, 20, 0.008, 0.02), now = drawRuns(dice, 3, 20, 0.008, 0.02, 1 + effect);
            const StepTimeChange change = compareStepTimes(base, now, {});
            ++all;
            covered += change.interval->low <= 1 + effect && 1 + effect <= change.interval->high;
            if (*change.smallestVisible > effect) continue;
            ++above;
            found += change.verdict == StepVerdict::regression;
        }
    }
    EXPECT_GT(above, 100);
    EXPECT_GE(found, 0.95 * above);
    EXPECT_GE(covered, 0.92 * all);
}

TEST(StepTime, AMixtureOfTwoKindsDoesNotFoolIt) {
    // Half of the steps take 7.7 ms, half 9.7 ms, by chance: medians jump by 26 %.
    Dice dice(17);
    const auto draw = [&](double share) {
        std::vector<ComparedRun> runs;
        for (int run = 0; run < 3; ++run) {
            runs.push_back(makeSample("run", {}));
            for (int step = 0; step < 20; ++step)
                runs.back().stepsNs.push_back((dice.uniform() < share ? 9.7e6 : 7.7e6) * (1 + 0.005 * dice.normal()));
        }
        return runs;
    };
    int claimed = 0, means = 0, found = 0;
    for (int i = 0; i < 150; ++i) {
        const StepTimeChange change = compareStepTimes(draw(0.5), draw(0.5), {});
        claimed += change.verdict == StepVerdict::regression;
        means += change.estimator == "mean";
        found += compareStepTimes(draw(0.1), draw(0.95), {}).verdict == StepVerdict::regression;
    }
    EXPECT_LE(claimed, 8);
    EXPECT_EQ(means, 150);
    EXPECT_GE(found, 135);
}

TEST(StepTime, ARepeatableMachineHasANoiseFloor) {
    const auto same =
        runsOf({std::vector<double>(20, 10e6), std::vector<double>(20, 10e6), std::vector<double>(20, 10e6)});
    const auto half =
        runsOf({std::vector<double>(20, 10.05e6), std::vector<double>(20, 10.05e6), std::vector<double>(20, 10.05e6)});
    const StepTimeChange change = compareStepTimes(same, half, {});
    EXPECT_EQ(change.verdict, StepVerdict::noChange);  // 0.5 % is under the threshold
    EXPECT_GT(*change.smallestVisible, 0.02);          // that six runs agree so well is no promise for the next six
    EXPECT_LT(*change.smallestVisible, 0.03);
    EXPECT_EQ(compareStepTimes(same, half, {0.003, 0.05}).verdict, StepVerdict::regression);
}

TEST(StepTime, SaysHowManyRunsAreMissing) {
    Dice dice(19);
    int asked = 0, decided = 0;
    for (int i = 0; i < 60; ++i) {
        auto base = drawRuns(dice, 3, 20, 0.015, 0.01), now = drawRuns(dice, 3, 20, 0.015, 0.01);
        const StepTimeChange change = compareStepTimes(base, now, {});
        if (change.verdict != StepVerdict::notEnoughSamples || change.moreRuns == 0) continue;
        ++asked;
        for (auto* side : {&base, &now})
            for (ComparedRun& run : drawRuns(dice, change.moreRuns, 20, 0.015, 0.01)) side->push_back(std::move(run));
        decided += compareStepTimes(base, now, {}).verdict != StepVerdict::notEnoughSamples;
    }
    EXPECT_GT(asked, 30);
    EXPECT_GE(decided, 0.8 * asked);
}

TEST(StepTime, RunsOfOneStepDifferByWhatStepsDiffer) {
    // Steps differ by 10 %. Ten runs of 50 steps agree within 1.4 %, a run of one step tells nothing of that.
    Dice dice(29);
    int claimed = 0;
    for (int i = 0; i < 100; ++i) {
        const auto base = drawRuns(dice, 10, 50, 0.001, 0.1), now = drawRuns(dice, 3, 1, 0.001, 0.1);
        const StepTimeChange change = compareStepTimes(base, now, {});
        claimed += change.verdict == StepVerdict::regression || change.verdict == StepVerdict::improvement;
    }
    EXPECT_LE(claimed, 10);
}

TEST(StepTime, OneStepIsNoSide) {
    Dice dice(31);
    const StepTimeChange change = compareStepTimes(drawRuns(dice, 10, 50, 0.001, 0.01), runsOf({{100e6}}), {});
    EXPECT_EQ(change.verdict, StepVerdict::notEnoughSamples);
    EXPECT_EQ(change.lacking, "one step does not tell a slow run from a slow step");
}

TEST(StepTime, RunsOfTheirFirstStepAloneAreNotComparedWithLongerOnes) {
    // The pipeline is empty when the first step begins: it is a tenth shorter.
    Dice dice(61);
    const auto base = drawRuns(dice, 3, 1, 0.001, 0.002, 0.9), now = drawRuns(dice, 3, 20, 0.001, 0.002);
    for (const StepTimeChange& change : {compareStepTimes(base, now, {}), compareStepTimes(now, base, {})}) {
        EXPECT_EQ(change.verdict, StepVerdict::notEnoughSamples);
        EXPECT_NE(change.lacking.find("runs of one step"), std::string::npos) << change.lacking;
    }
    EXPECT_EQ(compareStepTimes(base, drawRuns(dice, 3, 1, 0.001, 0.002), {}).verdict, StepVerdict::regression)
        << "both alike";
}

TEST(StepTime, AFastFirstStepAmongFewIsNoSlowStepOfTheOthers) {
    Dice dice(67);
    auto base = drawRuns(dice, 12, 5, 0.001, 0.002), now = drawRuns(dice, 12, 20, 0.001, 0.002);
    for (auto* side : {&base, &now})
        for (ComparedRun& run : *side) run.stepsNs[0] *= 0.9;
    EXPECT_EQ(compareStepTimes(base, now, {}).verdict, StepVerdict::noChange);
    EXPECT_EQ(compareStepTimes(now, base, {}).verdict, StepVerdict::noChange);
}

TEST(StepTime, ASideThatIsNoisierIsNotJudgedByTheQuietOne) {
    Dice dice(37);
    int claimed = 0, covered = 0;
    for (int i = 0; i < 200; ++i) {
        const auto quiet = drawRuns(dice, 10, 20, 0.003, 0.01), noisy = drawRuns(dice, 3, 20, 0.03, 0.01);
        const StepTimeChange change = i % 2 ? compareStepTimes(quiet, noisy, {}) : compareStepTimes(noisy, quiet, {});
        claimed += change.verdict == StepVerdict::regression;
        covered += change.interval->low <= 1 && 1 <= change.interval->high;
    }
    EXPECT_LE(claimed, 15);  // 2.5 % by construction: 5 expected
    EXPECT_GE(covered, 180);
}

TEST(RunStatistics, ManyRunsKnowTheNoiseUnlessTheFewAreNoisier) {
    std::vector<double> many;
    for (int i = 0; i < 30; ++i) many.push_back(0.01 * (i % 3 - 1));  // standard deviation 0.83 %
    const Side base = sideOf(many);
    const auto threeRuns = [](double apart) { return sideOf({-apart, 0, apart}); };
    const auto pooled = noiseOf(base, threeRuns(0.013));
    EXPECT_NEAR(pooled.error, pooled.betweenRuns * std::sqrt(1 / 30.0 + 1 / 3.0), 1e-9)
        << "1.6 times the noise of three runs is chance";
    EXPECT_EQ(pooled.degrees, 31);
    const auto own = noiseOf(base, threeRuns(0.03));
    EXPECT_NEAR(own.error, 0.03 / std::sqrt(3.0), 0.0005) << "3.6 times is not";
    EXPECT_LT(own.degrees, 3);
    // The same where the new side is the one with many.
    EXPECT_NEAR(noiseOf(threeRuns(0.013), base).error, pooled.error, 1e-12);
    // Ten runs know too little of it: the larger of both estimates counts.
    const Side few = sideOf({many.begin(), many.begin() + 10});
    EXPECT_NEAR(noiseOf(few, threeRuns(0.013)).error, std::sqrt(few.variance / 10 + 0.013 * 0.013 / 3), 1e-9);
}

TEST(StepTime, SaysHowOftenARegressionIsFoundAndHowManyRunsFindIt) {
    // Runs differ by 2 %. What one comparison in the middle of 200 promises of 5 %, and what is found of 400 drawn.
    Dice dice(61);
    for (const auto& [base, now] : {std::pair{6, 3}, std::pair{27, 3}, std::pair{10, 5}}) {
        SCOPED_TRACE(testing::Message() << now << " runs against " << base);
        std::vector<double> promised, enough;
        int found = 0;
        constexpr int kDraws = 400;
        for (int i = 0; i < kDraws; ++i) {
            const auto sameBuild =
                compareStepTimes(drawRuns(dice, base, 10, 0.02, 0), drawRuns(dice, now, 10, 0.02, 0), {});
            ASSERT_TRUE(sameBuild.detection);
            EXPECT_EQ(sameBuild.detection->size, 0.05);
            EXPECT_EQ(sameBuild.detection->runs, now);
            promised.push_back(sameBuild.detection->found);
            enough.push_back(sameBuild.detection->enoughRuns);
            found += compareStepTimes(drawRuns(dice, base, 10, 0.02, 0), drawRuns(dice, now, 10, 0.02, 0, 1.05), {})
                         .verdict == StepVerdict::regression;
        }
        EXPECT_NEAR(facts::median(promised), found / static_cast<double>(kDraws), 0.08);
        const int runs = static_cast<int>(facts::median(enough));
        EXPECT_GE(runs, now);
        EXPECT_LE(runs, 6);
    }
}

TEST(Metrics, ASideThatIsNoisierHasTheDegreesOfItsOwnRuns) {
    Dice dice(41);
    const auto draw = [&](int count, double noise) {
        std::vector<RunSummary> runs(static_cast<size_t>(count));
        for (RunSummary& run : runs) run.stepsNs.assign(10, 10e6 * (1 + noise * dice.normal()));
        return runs;
    };
    constexpr int kDraws = 2000;
    int outside = 0;
    for (int i = 0; i < kDraws; ++i) {
        const auto quiet = draw(10, 0.003), noisy = draw(3, 0.03);
        const auto changes = i % 2 ? compareMetrics(quiet, noisy, "", "") : compareMetrics(noisy, quiet, "", "");
        ASSERT_EQ(changes.front().name, "mean step");
        const auto& interval = changes.front().interval;
        ASSERT_TRUE(interval);
        outside += interval->low > 0 || interval->high < 0;
    }
    EXPECT_LE(outside, kDraws * 7 / 100) << "5 % by construction";
    EXPECT_GE(outside, kDraws * 2 / 100);
}

TEST(StepTime, ThreeRunsOfOneKindByChanceAreNoImprovement) {
    // A quarter of the runs is 26 % slower as a whole: in four of ten draws of three there is none of them.
    Dice dice(59);
    int claimed = 0;
    for (int i = 0; i < 150; ++i) {
        const auto draw = [&](int runs) {
            std::vector<ComparedRun> side;
            for (int run = 0; run < runs; ++run)
                side.push_back(drawRuns(dice, 1, 20, 0.003, 0.01, dice.uniform() < 0.25 ? 1.26 : 1)[0]);
            return side;
        };
        const auto base = draw(10), now = draw(3);
        claimed += compareStepTimes(base, now, {}).verdict == StepVerdict::improvement;
    }
    EXPECT_LE(claimed, 8);
}

/// Makes a share of the steps, by chance, ten times as long.
std::vector<ComparedRun> stalled(std::vector<ComparedRun> runs, Dice& dice, double share) {
    for (ComparedRun& run : runs)
        for (double& step : run.stepsNs) step *= dice.uniform() < share ? 10 : 1;
    return runs;
}

TEST(StepTime, SlowStepsThatComeInEveryRunAreARegression) {
    Dice dice(41);
    int found = 0, byRareSteps = 0, improved = 0;
    for (int i = 0; i < 50; ++i) {
        const auto clean = drawRuns(dice, 3, 500, 0.005, 0.02),
                   slow = stalled(drawRuns(dice, 3, 500, 0.005, 0.02), dice, 0.02);
        const StepTimeChange change = compareStepTimes(clean, slow, {});
        found += change.verdict == StepVerdict::regression;
        byRareSteps += change.byRareSteps;
        improved += compareStepTimes(slow, clean, {}).verdict == StepVerdict::improvement;
    }
    EXPECT_GE(found, 45);
    EXPECT_GE(byRareSteps, 40);
    EXPECT_GE(improved, 45);
}

TEST(StepTime, StalledStepsByChanceAreNone) {
    for (const auto& [share, steps] : {std::pair{0.005, 20}, {0.02, 20}, {0.02, 200}, {0.1, 20}}) {
        Dice dice(43);
        int claimed = 0;
        for (int i = 0; i < 100; ++i) {
            const auto draw = [&] { return stalled(drawRuns(dice, 3, steps, 0.005, 0.02), dice, share); };
            const auto base = draw(), now = draw();
            claimed += compareStepTimes(base, now, {}).verdict == StepVerdict::regression;
        }
        EXPECT_LE(claimed, 7) << share << " of " << steps;
    }
}

TEST(StepTime, AStalledStepDoesNotHideAChange) {
    Dice dice(47);
    auto base = drawRuns(dice, 3, 20, 0.003, 0.01);
    const auto now = drawRuns(dice, 3, 20, 0.003, 0.01, 1.05);
    base[1].stepsNs[4] *= 10;  // one of twenty is trimmed away
    EXPECT_EQ(compareStepTimes(base, now, {}).verdict, StepVerdict::regression);
}

TEST(StepTime, TwoStalledStepsOfTwentyMakeNoClaim) {
    // One of the two stays in the trimmed mean of that run: it takes half as long again as the runs beside it, which no
    // three runs explain.
    Dice dice(47);
    auto base = drawRuns(dice, 3, 20, 0.003, 0.01);
    const auto now = drawRuns(dice, 3, 20, 0.003, 0.01, 1.05);
    base[1].stepsNs[4] *= 10;
    base[1].stepsNs[9] *= 10;
    const StepTimeChange change = compareStepTimes(base, now, {});
    EXPECT_EQ(change.verdict, StepVerdict::notEnoughSamples);
    const StepTimeChange beside = compareStepTimes(base, base, {});
    EXPECT_EQ(beside.estimator, "trimmed mean");
    EXPECT_EQ(beside.modes.size(), 2u);
}

TEST(StepTime, SaysWhereRunsAreTooFewForExceptions) {
    Dice dice(53);
    const auto areFew = [&](int first, int second) {
        const auto base = drawRuns(dice, first, 20, 0.003, 0.01), now = drawRuns(dice, second, 20, 0.003, 0.01, 1.2);
        return compareStepTimes(base, now, {}).fewForExceptions;
    };
    EXPECT_TRUE(areFew(6, 1));
    EXPECT_TRUE(areFew(2, 2));
    EXPECT_FALSE(areFew(3, 3));
    EXPECT_FALSE(areFew(19, 1));
}

TEST(StepTime, RanksAreTestedWhereThereAreRunsEnough) {
    Dice dice(23);
    const auto few = drawRuns(dice, 3, 10, 0.01, 0.01), others = drawRuns(dice, 3, 10, 0.01, 0.01);
    EXPECT_FALSE(compareStepTimes(few, others, {}).rankPValue);
    const auto base = drawRuns(dice, 4, 10, 0.001, 0.001), now = drawRuns(dice, 4, 10, 0.001, 0.001, 1.2);
    const StepTimeChange change = compareStepTimes(base, now, {});
    ASSERT_TRUE(change.rankPValue);
    EXPECT_NEAR(*change.rankPValue, 2.0 / 70, 1e-12);
}

}  // namespace
}  // namespace rankscope::compare

// SPDX-License-Identifier: Apache-2.0
// Two sides of summaries compared: what is refused, what changed and why, and how it is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/compare/side_means.h"
#include "tests/unit/analyzer/compare/compared_sides.h"

namespace rankscope::compare {
namespace {

double sumOf(const std::vector<AttributionRow>& rows) {
    double sum = 0;
    for (const AttributionRow& row : rows) sum += row.ns;
    return sum;
}

TEST(Compare, TwoSidesOfTheSameAreNoChange) {
    const Comparison c = compareWith(nullptr);
    EXPECT_EQ(c.step.verdict, StepVerdict::noChange);
    EXPECT_FALSE(c.gate.failed);
    EXPECT_TRUE(c.causes.empty());
    for (const MetricChange& metric : c.metrics) EXPECT_FALSE(metric.significant) << metric.name;
}

TEST(Compare, ASlowRankIsNamedByItsRole) {
    const Comparison c = compareWith(slowRank);
    EXPECT_EQ(c.step.verdict, StepVerdict::regression);
    EXPECT_TRUE(c.gate.failed);
    ASSERT_FALSE(c.causes.empty());
    EXPECT_EQ(c.causes[0].kind, "straggler");
    EXPECT_EQ(c.causes[0].diagnosis, "RS301");
    EXPECT_EQ(c.causes[0].ranks, std::vector<int>{2});
    EXPECT_NEAR(c.causes[0].ns, 20 * kMs, 0.3 * kMs);
}

TEST(Compare, RanksAreMatchedByRoleNotByNumber) {
    // The same slow replica, but the new job numbers its ranks the other way round.
    const Comparison c = compareWith([](RunSummary& run) {
        slowRank(run);
        for (RoleSummary& role : run.roles) role.rank = 3 - role.rank;
    });
    ASSERT_FALSE(c.causes.empty());
    EXPECT_EQ(c.causes[0].kind, "straggler");
    EXPECT_EQ(c.causes[0].ranks, std::vector<int>{1});
}

TEST(Compare, AnImprovementHasTheCauseThatIsGone) {
    const Comparison c = compareRuns(makeSide(0, slowRank), makeSide(10), {});
    EXPECT_EQ(c.step.verdict, StepVerdict::improvement);
    ASSERT_FALSE(c.causes.empty());
    EXPECT_EQ(c.causes[0].kind, "straggler");
    EXPECT_LT(c.causes[0].ns, 0);
    EXPECT_FALSE(c.gate.failed);
}

TEST(Compare, ASlowerLinkIsToldFromLostOverlap) {
    EXPECT_EQ(compareWith(slowLink).causes.at(0).kind, "slower_link");
    const Comparison lost = compareWith([](RunSummary& run) {
        slowLink(run);
        run.traffic[0].transferNs = 10 * kMs;  // as fast as before, but less of it hidden
        run.traffic[0].busbw *= 2;
    });
    EXPECT_EQ(lost.causes.at(0).kind, "lost_overlap");
    const Comparison precise = compareWith([](RunSummary& run) {
        slowLink(run);
        run.traffic[0].bytes *= 2;
        run.traffic[0].dataType = "f32";
    });
    EXPECT_EQ(precise.causes.at(0).kind, "full_precision");
}

TEST(Compare, MoreWorkIsNoSlowRank) {
    const Comparison c = compareWith([](RunSummary& run) {
        slowRank(run);
        run.roles[2].work["gemm"].blocks *= 1.25;
    });
    EXPECT_EQ(c.causes.at(0).kind, "uneven_work");
}

TEST(Compare, AllRanksOfAHostAreANode) {
    const Comparison c = compareWith([](RunSummary& run) {
        slowRank(run);
        run.roles[3].computeNs += 20 * kMs;
        run.findings.push_back(finding("RS302", 18 * kMs));
        run.findings.back().ranks = {2, 3};
        run.findings.back().roles = {"dp 2", "dp 3"};
    });
    EXPECT_EQ(c.causes.at(0).kind, "slow_node");
    EXPECT_EQ(c.causes.at(0).ranks, (std::vector<int>{2, 3}));
}

TEST(Compare, WhatCallsLeaveOpenIsTheFindingThatKernelsTell) {
    const Change kernels = [](RunSummary& run) { run.findings.push_back(finding("RS304", 18 * kMs)); };
    const Change calls = [](RunSummary& run) {
        run.findings.push_back(finding("RS301", 18 * kMs));
        run.findings.back().alternatives = {"RS304"};
    };
    const auto compared = [](Change base, Change now) {
        return compareRuns(makeSide(0, base), makeSide(10, now), {}).findings;
    };
    const std::vector<FindingChange> same = compared(kernels, calls);
    ASSERT_EQ(same.size(), 1u);
    EXPECT_EQ(same[0].status, FindingStatus::same);
    EXPECT_EQ(same[0].id, "RS301");
    EXPECT_EQ(same[0].alternatives, std::vector<std::string>{"RS304"});
    EXPECT_EQ(same[0].knownAs, "RS304") << "an alert of a code host stays the same";
    EXPECT_EQ(compared(calls, kernels).size(), 1u);
    EXPECT_EQ(compared([](RunSummary& run) { run.findings.push_back(finding("RS302", 18 * kMs)); }, calls).size(), 2u);
}

TEST(Compare, TheAttributionAddsUpToTheChange) {
    for (const Change change : {slowRank, slowLink}) {
        const Comparison c = compareWith(change);
        EXPECT_NEAR(sumOf(c.attribution), c.step.changeNs(), 1e-6 * std::abs(c.step.changeNs()));
    }
    const Comparison c = compareWith([](RunSummary& run) {  // no replay: the categories of the rank that waits least
        slowRank(run);
        run.hasPath = false;
    });
    EXPECT_NEAR(sumOf(c.attribution), c.step.changeNs(), 1e-6 * c.step.changeNs());
    EXPECT_EQ(c.attribution.at(0).part, StepPart::compute);
    EXPECT_EQ(c.attribution.at(0).ranks, std::vector<int>{2});
}

TEST(Compare, OtherJobsAreRefusedAndSaid) {
    const Comparison c = compareWith([](RunSummary& run) { run.environment["world_size"] = "8"; });
    EXPECT_EQ(c.step.verdict, StepVerdict::incomparable);
    EXPECT_FALSE(c.step.ratio);
    ASSERT_EQ(c.incomparable.size(), 1u);
    EXPECT_TRUE(c.incomparable[0].refused);
    EXPECT_TRUE(c.attribution.empty());
    EXPECT_FALSE(c.gate.failed);
    for (const MetricChange& metric : c.metrics)
        EXPECT_EQ(metric.refused.empty(), metric.unit == "share") << metric.name;

    CompareOptions across;
    across.across = {"world-size"};
    EXPECT_EQ(compareWith([](RunSummary& run) { run.environment["world_size"] = "8"; }, across).step.verdict,
              StepVerdict::noChange);
    EXPECT_EQ(compareWith([](RunSummary& run) { run.environment["nccl"] = "2.29"; }).step.verdict,
              StepVerdict::noChange);  // said, and compared
    EXPECT_EQ(compareWith([](RunSummary& run) { run.environment["nccl"] = "2.29"; }).incomparable.at(0).what, "NCCL");
}

TEST(Compare, LostRecordsForbidCategoriesNotTheStepTime) {
    const Comparison c = compareWith([](RunSummary& run) {
        slowRank(run);
        run.deviceLoss = true;
    });
    EXPECT_EQ(c.step.verdict, StepVerdict::regression);
    EXPECT_TRUE(c.causes.empty());
    EXPECT_FALSE(c.incomparable.empty());
}

TEST(Compare, RunsOfOneSideMustBeOfOneKind) {
    auto mixed = makeSide(0);
    mixed[1].environment["world_size"] = "16";
    for (const auto& [base, now] : {std::pair{mixed, makeSide(10)}, {makeSide(10), mixed}}) {
        const Comparison c = compareRuns(base, now, {});
        EXPECT_EQ(c.step.verdict, StepVerdict::incomparable);
        EXPECT_EQ(c.gate.exitStatus, 3);
        EXPECT_NE(c.step.reason.find("world size is 4 in run0 and 16 in run1"), std::string::npos) << c.step.reason;
    }
}

TEST(Compare, ARunGivenTwiceCountsOnce) {
    auto base = makeSide(0);
    base.push_back(base.front());
    const Comparison c = compareRuns(base, makeSide(10), {});
    EXPECT_EQ(c.base.runs.size(), 3u);
    EXPECT_FALSE(c.notes.empty());
    EXPECT_EQ(compareRuns({makeRun(0), makeRun(0)}, {makeRun(1), makeRun(1)}, {}).step.verdict,
              StepVerdict::notEnoughSamples);
}

TEST(Compare, RunsThatRepeatEachOtherToTheNanosecondAreRunsAllTheSame) {
    std::vector<RunSummary> base(3, makeRun(0)), now(3, makeRun(0));
    for (size_t i = 0; i < 3; ++i) {
        base[i].startUnixNs = static_cast<int64_t>(1000 + i);
        now[i].startUnixNs = static_cast<int64_t>(2000 + i);
        for (double& step : now[i].stepsNs) step *= 1.1;
    }
    const Comparison c = compareRuns(base, now, {});
    EXPECT_EQ(c.base.runs.size(), 3u);
    EXPECT_EQ(c.step.verdict, StepVerdict::regression);
}

TEST(Compare, RunsWithoutStepsAreLeftOutAndSaid) {
    auto base = makeSide(0);
    base[0].stepsNs.clear();
    const Comparison c = compareRuns(base, makeSide(10), {});
    EXPECT_EQ(c.base.runs.size(), 2u);
    EXPECT_FALSE(c.notes.empty());
    RunSummary empty = makeRun(0);
    empty.stepsNs.clear();
    EXPECT_THROW(compareRuns({empty}, makeSide(10), {}), CompareError);
}

TEST(Compare, OneStepAndOtherNumbersOfStepsCanBeCompared) {
    RunSummary one = makeRun(0);
    one.stepsNs = {90 * kMs};
    one.steps = 1;
    const Comparison c = compareRuns({one}, makeSide(10), {});
    EXPECT_TRUE(c.step.interval);
    EXPECT_EQ(c.base.runs[0].steps, 1);
}

TEST(Compare, NoBaselineIsANotice) {
    const Comparison c = compareRuns({}, makeSide(10), {});
    EXPECT_FALSE(c.gate.failed);
    EXPECT_EQ(c.step.verdict, StepVerdict::noBaseline);
    EXPECT_FALSE(c.gate.notices.empty());
    EXPECT_NE(renderComparisonText(c).find("no baseline"), std::string::npos);
    EXPECT_TRUE(nlohmann::json::parse(renderComparisonJson(c)).at("step_time").at("ratio").is_null());
}

RunSummary& dieAfter(int steps, RunSummary& run) {
    run.losses.push_back({"died", "error", 1, "rank 2 (pid 7 on b) died of signal 9: its recording ends there", 2});
    run.stepsNs.resize(static_cast<size_t>(steps));
    run.steps = steps;
    return run;
}

TEST(Compare, ARunThatDiedIsNamedAndNotComparedWhenItLostSteps) {
    auto now = makeSide(10);
    dieAfter(5, now[1]);
    const Comparison c = compareRuns(makeSide(0), now, {});
    EXPECT_EQ(c.step.verdict, StepVerdict::incomparable);
    EXPECT_FALSE(c.gate.judged);
    EXPECT_TRUE(isNoticed(c, "new run run11 did not finish: rank 2"));

    CompareOptions across;
    across.across = {"unfinished"};
    EXPECT_EQ(compareRuns(makeSide(0), now, across).step.verdict, StepVerdict::noChange);
    auto late = makeSide(10);
    dieAfter(12, late[1]);
    const Comparison whole = compareRuns(makeSide(0), late, {});
    EXPECT_EQ(whole.step.verdict, StepVerdict::noChange);
    EXPECT_TRUE(isNoticed(whole, "did not finish: rank 2"));
    for (RunSummary& run : late)
        run.losses.insert(run.losses.begin(), {{"died", "error", 1, "rank 0 vanished", 0},
                                               {"first_death", "error", 2, "rank 2 stopped first", std::nullopt}});
    EXPECT_TRUE(isNoticed(compareRuns(makeSide(0), late, {}), "new run run11 did not finish: rank 2 stopped first"));
    EXPECT_FALSE(isNoticed(compareWith(nullptr), "did not finish"));
}

TEST(Compare, ARunOnBothSidesIsSaid) {
    const Comparison c = compareRuns(makeSide(0), makeSide(0), {});
    EXPECT_EQ(c.notes.size(), 3u);
    EXPECT_NE(c.notes.front().find("on both sides"), std::string::npos);
    EXPECT_TRUE(compareWith(nullptr).notes.empty());
}

TEST(CompareSentence, ASureChangeUnderTheThresholdIsNoNoChange) {
    CompareOptions options;
    options.step.threshold = 0.5;
    const Comparison c = compareWith(slowRank, options);
    EXPECT_EQ(c.step.verdict, StepVerdict::noChange);
    EXPECT_EQ(c.step.reason.find("slower, under the threshold of 50 %"), 0u) << c.step.reason;
    EXPECT_EQ(compareWith(nullptr).step.reason.find("no change"), 0u);
}

TEST(CompareSentence, WhatIsBeyondTwiceTheStepIsNoNumber) {
    StepTimeChange step;
    step.verdict = StepVerdict::notEnoughSamples;
    step.baseNs = step.newNs = kMs;
    step.ratio = 1;
    step.smallestVisible = 37;
    EXPECT_NE(verdictSentence(step).find("only a slow-down to more than twice the step would"), std::string::npos);
}

TEST(Compare, RanksTakeTheirNumbersWhereNotAllRunsTellTheirPlaces) {
    auto now = makeSide(10, slowRank);
    for (RoleSummary& role : now[1].roles) role.role = "rank " + std::to_string(role.rank);
    const Comparison c = compareRuns(makeSide(0), now, {});
    ASSERT_FALSE(c.causes.empty());
    EXPECT_EQ(c.causes[0].kind, "straggler");
    EXPECT_EQ(c.causes[0].ranks, std::vector<int>{2});
    EXPECT_NEAR(c.causes[0].ns, 20 * kMs, 0.3 * kMs);
}

TEST(Compare, ARoleIsTheMeanOfTheRunsThatHaveIt) {
    auto runs = makeSide(0);
    const double whole = meansOf(runs).roles.at("dp 3").computeNs;
    runs[1].roles.pop_back();
    EXPECT_NEAR(meansOf(runs).roles.at("dp 3").computeNs, whole, 0.01 * whole);
}

TEST(Compare, NoNewRunIsAnError) {
    EXPECT_THROW(compareRuns(makeSide(0), {}, {}), CompareError);
}

// No two samples of a family may have the same labels; names may begin alike for longer than a label is.
TEST(ComparisonOpenMetrics, LongNamesStayDifferent) {
    const auto withTraffic = [](RunSummary& run) {
        for (const std::string& end : {std::string("a"), std::string("b"), std::string("\x01"), std::string("\x02")}) {
            run.traffic.push_back(run.traffic.front());
            run.traffic.back().op = (end < "a" ? "op" : std::string(400, 'x')) + end;
        }
    };
    auto base = makeSide(0, withTraffic), now = makeSide(10, withTraffic);
    std::istringstream lines(renderComparisonOpenMetrics(compareRuns(base, now, {})));
    std::set<std::string> series;
    size_t samples = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("#")) continue;
        ++samples;
        series.insert(line.substr(0, line.rfind(' ')));
        EXPECT_LT(line.size(), 400u);
    }
    EXPECT_EQ(series.size(), samples);
}

TEST(ComparisonJson, HasNoNaNsAndEscapesNames) {
    auto now = makeSide(10, slowRank);
    now[0].name = "<script>\"x\"\n\xff";
    now[0].roles[0].computeNs = std::nan("");
    const nlohmann::json json = nlohmann::json::parse(renderComparisonJson(compareRuns(makeSide(0), now, {})));
    EXPECT_EQ(json.at("schema"), "rankscope.compare/1");
    EXPECT_EQ(json.at("step_time").at("verdict"), "regression");
    EXPECT_EQ(json.at("gate").at("failed"), true);
}

TEST(ComparisonText, HoldsNoEscapeSequencesOfNames) {
    Comparison comparison;
    comparison.step.reason =
        "a\x1b]0;title\x07"
        "b\x1b[31mc\x1b[2Jd\ne";
    comparison.gate.failOn = {"regression"};
    const std::string plain = renderComparisonText(comparison, false);
    EXPECT_EQ(plain.find_first_of("\x1b\x07"), std::string::npos) << plain;
    EXPECT_NE(plain.find("d e\n"), std::string::npos) << "one line stays one line";
    const std::string coloured = renderComparisonText(comparison, true);
    EXPECT_NE(coloured.find("\x1b[1m"), std::string::npos) << "ours";
    EXPECT_EQ(coloured.find("\x1b]"), std::string::npos);
    EXPECT_EQ(coloured.find("\x1b[2J"), std::string::npos);
    comparison.step.reason = std::string(100'000, 'x');
    for (const bool colour : {false, true}) EXPECT_LT(renderComparisonText(comparison, colour).size(), 10'000u);
}

}  // namespace
}  // namespace rankscope::compare

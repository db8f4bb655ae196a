// SPDX-License-Identifier: Apache-2.0
// Two sides of summaries compared: what is refused, what changed and why, what the gate says, and files that are no summaries.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "analyzer/compare/baseline_folder.h"
#include "analyzer/compare/compare.h"
#include "analyzer/compare/renderers.h"
#include "analyzer/compare/sentences.h"
#include "analyzer/compare/side_means.h"
#include "analyzer/compare/summary_file.h"

namespace rankscope::analyzer {
namespace {

constexpr double kMs = 1e6;

/// A data-parallel job of four ranks: 80 ms of compute, then 10 ms of a sum of gradients that nothing hides; `number` makes runs differ a little.
RunSummary makeRun(int number) {
    RunSummary run;
    run.name = "run" + std::to_string(number);
    run.environment = {{"world_size", "4"}, {"gpu", "H100"}, {"layout", "dp 4"}, {"source", "capture"}, {"nccl", "2.28"}, {"virtual", "no"}};
    run.hosts = {"a"};
    const double factor = 1 + 0.002 * (number % 3 - 1);
    for (int step = 0; step < 12; ++step) run.stepsNs.push_back(90 * kMs * factor * (1 + 0.001 * (step % 4)));
    run.steps = 12;
    for (int rank = 0; rank < 4; ++rank) {
        RoleSummary role;
        role.role = "dp " + std::to_string(rank);
        role.rank = rank;
        role.host = rank < 2 ? "a" : "b";
        role.computeNs = 80 * kMs * factor;
        role.exposedTransferNs = 10 * kMs;
        role.stepNs = role.computeNs + role.exposedTransferNs;
        role.kernels = 100;
        role.work = {{"gemm", {role.computeNs, 1e5}}};
        if (rank == 0) role.pathNs = {{"compute", role.computeNs}, {"transfer", 10 * kMs}};
        run.roles.push_back(role);
    }
    TrafficSummary sum;
    sum.use = "gradients";
    sum.op = "all_reduce";
    sum.dataType = "bf16";
    sum.ranks = 4;
    sum.sizeClass = 12;
    sum.count = 4;
    sum.bytes = 100 << 20;
    sum.transferNs = sum.exposedTransferNs = 10 * kMs;
    sum.busbw = 15e9;
    run.traffic.push_back(sum);
    run.pathTransferNs = {{"all_reduce of gradients", 10 * kMs}};
    run.hasPath = true;
    run.kernels = {{"gemm", 100, 80 * kMs * factor}};
    run.efficiency = {{"parallel", 0.88}};
    return run;
}

using Change = void (*)(RunSummary&);

std::vector<RunSummary> makeSide(int first, Change change = nullptr) {
    std::vector<RunSummary> runs;
    for (int i = first; i < first + 3; ++i) {
        runs.push_back(makeRun(i));
        runs.back().stepsNs.front() += i;  // no run is another to the nanosecond
        if (change) change(runs.back());
    }
    return runs;
}

void longerSteps(RunSummary& run, double ns) {
    for (double& step : run.stepsNs) step += ns;
}

Comparison compareWith(Change change, const CompareOptions& options = {}) { return compareRuns(makeSide(0), makeSide(10, change), options); }

void slowRank(RunSummary& run) {
    longerSteps(run, 20 * kMs);
    run.roles[2].computeNs += 20 * kMs;
    for (RoleSummary& role : run.roles) {
        role.stepNs += 20 * kMs;
        if (role.rank != 2) role.exposedWaitNs += 20 * kMs;
    }
    run.roles[2].pathNs["compute"] = run.roles[0].pathNs["compute"] + 20 * kMs;
    run.roles[0].pathNs["compute"] = 0;
}

void slowLink(RunSummary& run) {
    longerSteps(run, 10 * kMs);
    run.traffic[0].transferNs *= 2;
    run.traffic[0].exposedTransferNs *= 2;
    run.traffic[0].busbw /= 2;
    run.roles[0].pathNs["transfer"] += 10 * kMs;
    run.pathTransferNs["all_reduce of gradients"] += 10 * kMs;
}

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
    const Comparison small = compareWith([](RunSummary& run) {
        slowLink(run);
        run.traffic[0].count *= 25;
        run.traffic[0].sizeClass = 10;
    });
    EXPECT_EQ(small.causes.at(0).kind, "smaller_buckets");
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
    });
    EXPECT_EQ(c.causes.at(0).kind, "slow_node");
    EXPECT_EQ(c.causes.at(0).ranks, (std::vector<int>{2, 3}));
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
    EXPECT_EQ(c.attribution.at(0).category, "compute");
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
    for (const MetricChange& metric : c.metrics) EXPECT_EQ(metric.refused.empty(), metric.unit == "share") << metric.name;

    CompareOptions across;
    across.across = {"world-size"};
    EXPECT_EQ(compareWith([](RunSummary& run) { run.environment["world_size"] = "8"; }, across).step.verdict, StepVerdict::noChange);
    EXPECT_EQ(compareWith([](RunSummary& run) { run.environment["nccl"] = "2.29"; }).step.verdict, StepVerdict::noChange);  // said, and compared
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
    EXPECT_THROW(compareRuns(mixed, makeSide(10), {}), CompareError);
}

TEST(Compare, ARunGivenTwiceCountsOnce) {
    auto base = makeSide(0);
    base.push_back(base.front());
    const Comparison c = compareRuns(base, makeSide(10), {});
    EXPECT_EQ(c.base.runs.size(), 3u);
    EXPECT_FALSE(c.notes.empty());
    EXPECT_EQ(compareRuns({makeRun(0), makeRun(0)}, {makeRun(1), makeRun(1)}, {}).step.verdict, StepVerdict::notEnoughSamples);
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
    EXPECT_FALSE(c.gate.notices.empty());
    EXPECT_NE(renderComparisonText(c).find("no baseline"), std::string::npos);
    EXPECT_TRUE(nlohmann::json::parse(renderComparisonJson(c)).at("step_time").at("ratio").is_null());
}

// --- findings and the gate ---

FindingSummary finding(const std::string& id, double costNs, const std::string& verdict = "found") {
    FindingSummary row;
    row.id = id;
    row.title = "straggler";
    row.verdict = verdict;
    row.ranks = {2};
    row.roles = {"dp 2"};
    row.costNs = costNs;
    row.severity = costNs / (90 * kMs);
    return row;
}

FindingStatus statusAfter(std::optional<FindingSummary> before, std::optional<FindingSummary> after) {
    auto base = makeSide(0), now = makeSide(10);
    for (RunSummary& run : base)
        if (before) run.findings.push_back(*before);
    for (RunSummary& run : now)
        if (after) run.findings.push_back(*after);
    return compareRuns(base, now, {}).findings.at(0).status;
}

TEST(CompareFindings, AreNewGoneWorseOrBetter) {
    EXPECT_EQ(statusAfter(std::nullopt, finding("RS301", 9 * kMs)), FindingStatus::isNew);
    EXPECT_EQ(statusAfter(finding("RS301", 9 * kMs), std::nullopt), FindingStatus::gone);
    EXPECT_EQ(statusAfter(finding("RS301", 5 * kMs), finding("RS301", 9 * kMs)), FindingStatus::worse);
    EXPECT_EQ(statusAfter(finding("RS301", 9 * kMs), finding("RS301", 5 * kMs)), FindingStatus::better);
    EXPECT_EQ(statusAfter(finding("RS301", 9 * kMs), finding("RS301", 9.1 * kMs)), FindingStatus::same);
    // 2.9 % of the step is a note, 3.1 % a finding: that is no news.
    EXPECT_EQ(statusAfter(finding("RS301", 2.6 * kMs, "note"), finding("RS301", 2.8 * kMs)), FindingStatus::same);
}

Comparison gateOn(std::vector<std::string> failOn, std::vector<std::string> allow, bool everywhere = false) {
    auto base = makeSide(0), now = makeSide(10);
    for (RunSummary& run : now) run.findings.push_back(finding("RS301", 9 * kMs));
    if (everywhere)
        for (RunSummary& run : base) run.findings.push_back(finding("RS301", 9 * kMs));
    CompareOptions options;
    options.gate = {std::move(failOn), std::move(allow)};
    return compareRuns(base, now, options);
}

TEST(CompareGate, FailsOnWhatItIsTold) {
    EXPECT_FALSE(gateOn({"regression"}, {}).gate.failed);
    EXPECT_TRUE(gateOn({"regression", "new-finding"}, {}).gate.failed);
    EXPECT_TRUE(gateOn({"RS3*"}, {}).gate.failed);
    EXPECT_TRUE(gateOn({"RS301"}, {}, true).gate.failed);       // found, new or not
    EXPECT_FALSE(gateOn({"new-finding"}, {}, true).gate.failed);
    EXPECT_FALSE(gateOn({"RS2*"}, {}).gate.failed);
    EXPECT_FALSE(gateOn({"new-finding", "never"}, {}).gate.failed);
    const Comparison allowed = gateOn({"new-finding"}, {"RS301"});
    EXPECT_FALSE(allowed.gate.failed);
    EXPECT_EQ(allowed.gate.allowed.size(), 1u);
    EXPECT_TRUE(allowed.findings.at(0).allowed);
}

bool isNoticed(const Comparison& c, const std::string& words) {
    return std::ranges::any_of(c.gate.notices, [&](const std::string& notice) { return notice.find(words) != std::string::npos; });
}

TEST(CompareGate, SaysTheRegressionThatDoesNotFail) {
    for (const char* failOn : {"never", "RS301", "new-finding"}) {
        CompareOptions options;
        options.gate.failOn = {failOn};
        const Comparison c = compareWith(slowRank, options);
        EXPECT_FALSE(c.gate.failed) << failOn;
        EXPECT_TRUE(isNoticed(c, "regression: 90")) << failOn;
    }
}

TEST(CompareGate, DoesNotJudgeWhatMustNotBeCompared) {
    const Comparison c = compareWith([](RunSummary& run) { run.environment["world_size"] = "8"; });
    EXPECT_FALSE(c.gate.judged);
    for (const std::string& text : {renderComparisonText(c), renderComparisonMarkdown(c), renderComparisonJunit(c), renderComparisonAnnotations(c), renderComparisonHtml(c)}) {
        EXPECT_NE(text.find("not judged"), std::string::npos) << text;
        EXPECT_EQ(text.find("ate passed"), std::string::npos) << text;
    }
    EXPECT_EQ(nlohmann::json::parse(renderComparisonJson(c)).at("gate").at("judged"), false);
    EXPECT_TRUE(compareWith(nullptr).gate.judged);
}

TEST(CompareGate, FindingsAreJudgedWithoutABaseline) {
    auto now = makeSide(10);
    for (RunSummary& run : now) run.findings.push_back(finding("RS301", 9 * kMs));
    CompareOptions options;
    options.gate.failOn = {"RS301"};
    const Comparison c = compareRuns({}, now, options);
    EXPECT_TRUE(c.gate.failed);
    ASSERT_EQ(c.findings.size(), 1u);
    EXPECT_EQ(c.findings[0].status, FindingStatus::present);
    options.gate.failOn = {"new-finding"};
    EXPECT_FALSE(compareRuns({}, now, options).gate.failed);  // nothing tells that it is new
}

TEST(CompareFindings, ThoseOfAFewNewRunsAreListed) {
    auto now = makeSide(10);
    now[1].findings.push_back(finding("RS301", 9 * kMs));
    CompareOptions options;
    options.gate.failOn = {"RS301"};
    const Comparison c = compareRuns(makeSide(0), now, options);
    ASSERT_EQ(c.findings.size(), 1u);
    EXPECT_EQ(c.findings[0].status, FindingStatus::present);
    EXPECT_NE(renderComparisonText(c).find("in 1 of 3 new runs"), std::string::npos);
    EXPECT_NE(renderComparisonMarkdown(c).find("in 1 of 3 new runs"), std::string::npos);
    EXPECT_TRUE(c.gate.failed);
    options.gate.failOn = {"new-finding"};
    EXPECT_FALSE(compareRuns(makeSide(0), now, options).gate.failed);
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
    for (RunSummary& run : late) run.losses.insert(run.losses.begin(), {{"died", "error", 1, "rank 0 vanished", 0}, {"first_death", "error", 2, "rank 2 stopped first", std::nullopt}});
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

TEST(Compare, NoNewRunIsAnError) { EXPECT_THROW(compareRuns(makeSide(0), {}, {}), CompareError); }

TEST(CompareGate, KnowsItsWords) {
    EXPECT_EQ(checkFailOn("RS2*"), "");
    EXPECT_EQ(checkFailOn("new-finding"), "");
    EXPECT_NE(checkFailOn("regresion"), "");
    EXPECT_NE(checkAllow("RS999"), "");
    EXPECT_NE(checkAllow("regression"), "");
}

TEST(CompareFindings, TenThousandAreCappedAndSaid) {
    auto now = makeSide(10);
    for (RunSummary& run : now)
        for (int i = 0; i < 10000; ++i) {
            run.findings.push_back(finding("RS301", 9 * kMs));
            run.findings.back().roles = {"dp " + std::to_string(i)};
        }
    const Comparison c = compareRuns(makeSide(0), now, {});
    EXPECT_EQ(c.findings.size(), kMostFindingRows);
    EXPECT_NE(c.notes.back().find("10000"), std::string::npos);
}

// --- files ---

TEST(SummaryFile, ComesBackAsItWas) {
    RunSummary run = makeRun(1);
    run.label = "commit <b>&\"1\"";
    run.findings.push_back(finding("RS301", 9 * kMs));
    run.losses.push_back({"dropped", "warning", 3, "three records", std::nullopt});
    const std::string text = renderSummary(run);
    const RunSummary back = parseSummary(text, "x.json");
    EXPECT_EQ(renderSummary(back), text);
    EXPECT_EQ(summaryId(back), summaryId(run));
    EXPECT_TRUE(back.fromBaseline);
    EXPECT_LT(text.size(), 16384u);
}

std::string changed(const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json json = nlohmann::json::parse(renderSummary(makeRun(1)));
    change(json);
    return json.dump();
}

std::string errorOf(const std::string& text) {
    try {
        parseSummary(text, "x.json");
    } catch (const SummaryError& error) {
        return error.what();
    }
    return "";
}

TEST(SummaryFile, SaysWhatIsWrongAndWhere) {
    EXPECT_NE(errorOf("{\"steps_ns\": [NaN]}").find("x.json"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["schema"] = "rankscope.run-summary/9"; })).find("another version"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["schema"] = "rankscope.report/1"; })).find("rankscope.report/1"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["steps_ns"][3] = -1; })).find("steps_ns[3]"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["steps_ns"][3] = "1"; })).find("steps_ns"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["roles"][2]["compute_ns"] = nullptr; })).find("roles[2].compute_ns"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json.erase("traffic"); })).find("traffic is missing"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["roles"][2]["compute_ns"] = -1; })).find("roles[2].compute_ns is -1"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["steps_ns"][3] = 1e300; })).find("steps_ns[3]"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["steps"] = 1e300; })).find("steps is 1e+300"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["start_unix_ns"] = 1e19; })).find("start_unix_ns"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["start_unix_ns"] = ~0ull; })).find("start_unix_ns"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["roles"][0]["kernel_ns"] = {-5}; })).find("roles[0].kernel_ns[0]"), std::string::npos);
    EXPECT_NE(errorOf(changed([](auto& json) { json["loss"] = {{{"kind", "x"}, {"severity", "info"}, {"count", 1e30}, {"what_it_means", ""}}}; })).find("loss[0].count"), std::string::npos);
    EXPECT_EQ(parseSummary(changed([](auto& json) { json["start_unix_ns"] = 1700000000123456789; }), "x.json").startUnixNs, 1700000000123456789) << "no double in between";
    try {
        parseSummary(changed([](auto& json) { json["roles"][1].erase("kernel_ns"); }), "x.json");
        ADD_FAILURE() << "a missing key was read";
    } catch (const SummaryError& error) {
        EXPECT_NE(std::string(error.what()).find("roles[1].kernel_ns is missing"), std::string::npos);
        EXPECT_NE(error.hint().find("another version"), std::string::npos);
    }
    EXPECT_NE(errorOf("[]").find("schema"), std::string::npos);
    EXPECT_EQ(errorOf(changed([](auto&) {})), "");
}

TEST(Baseline, IsAFolderOfFilesNamedByTheirContents) {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("rankscope-baseline-test-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    EXPECT_TRUE(readBaseline(folder).empty());
    for (int i = 0; i < 4; ++i) {
        RunSummary run = makeSide(i).front();
        run.startUnixNs = 1000 - i;
        saveToBaseline(run, folder);
        EXPECT_EQ(saveToBaseline(run, folder), folder / (summaryId(run) + ".json"));
    }
    EXPECT_EQ(baselineFiles(folder).size(), 4u);
    EXPECT_EQ(pruneBaseline(folder, 3).size(), 1u);
    for (const RunSummary& run : readBaseline(folder)) EXPECT_GT(run.startUnixNs, 997);  // the oldest is gone
    std::filesystem::remove_all(folder);
}

// --- output ---

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
    comparison.step.reason = "a\x1b]0;title\x07" "b\x1b[31mc\x1b[2Jd\ne";
    comparison.gate.failOn = {"regression"};
    const std::string plain = renderComparisonText(comparison, false);
    EXPECT_EQ(plain.find_first_of("\x1b\x07"), std::string::npos) << plain;
    EXPECT_NE(plain.find("d e\n"), std::string::npos) << "one line stays one line";
    const std::string coloured = renderComparisonText(comparison, true);
    EXPECT_NE(coloured.find("\x1b[1m"), std::string::npos) << "ours";
    EXPECT_EQ(coloured.find("\x1b]"), std::string::npos);
    EXPECT_EQ(coloured.find("\x1b[2J"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::analyzer

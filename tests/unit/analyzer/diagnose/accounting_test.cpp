// SPDX-License-Identifier: Apache-2.0
// What a report does not know is said: time that nobody accounts for, diagnoses without their input, values that no
// file tells.
#include "analyzer/diagnose/accounting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "analyzer/report/renderers.h"
#include "analyzer/report/sentences.h"
#include "analyzer/text/terminal_text.h"
#include "tests/unit/analyzer/found.h"
#include "tests/unit/analyzer/jobs.h"

namespace rankscope::diagnose {
namespace {

/// Steps of 100 ms on four ranks: kernels of 10 ms, by rank from `startNs` into the step on, then an all-reduce.
test::TraceFixture fourRanks(const std::array<int64_t, 4>& startNs, const std::array<int, 4>& kernels) {
    test::TraceFixture job(4, 4);
    job.links("intra:gbps=200");
    const int world = job.communicator({0, 1, 2, 3});
    for (int step = 0; step < 5; ++step) {
        const int64_t start = step * 100 * test::kMs;
        std::vector<int64_t> arrivals;
        for (int rank = 0; rank < 4; ++rank) {
            const size_t r = static_cast<size_t>(rank);
            job.step(rank, step, start, 100 * test::kMs);
            for (int k = 0; k < kernels[r]; ++k)
                job.kernel(rank, start + startNs[r] + k * 10 * test::kMs, 10 * test::kMs, "gemm", 64);
            arrivals.push_back(start + startNs[r] + kernels[r] * 10 * test::kMs);
        }
        const int64_t end = job.collective(world, store::Op::allReduce, 100'000'000, arrivals, test::kMs);
        for (int rank = 0; rank < 4; ++rank) job.kernel(rank, end, start + 100 * test::kMs - end, "optimizer", 32);
    }
    return job;
}

/// Rank 2 begins its compute late, for no reason that the trace shows.
test::TraceFixture lateBeginner(int64_t lateNs) {
    return fourRanks({0, 0, lateNs, 0}, {5, 5, 5, 5});
}

const Account& accountOf(const report::Report& report, Exposed category) {
    return *std::find_if(report.accounting.accounts.begin(), report.accounting.accounts.end(),
                         [&](const Account& a) { return a.category == category; });
}

std::string needOf(const report::Report& report, const std::string& id) {
    for (const NotJudged& open : report.notJudged)
        if (open.id == id) return open.needs;
    return {};
}

TEST(Unexplained, WaitingThatNoFindingAccountsForIsInTheHeadlineWithTheRankWaitedFor) {
    const report::Report report = lateBeginner(30 * test::kMs).analyze();
    ASSERT_EQ(test::idsIn(report), "");
    ASSERT_EQ(report.accounting.unexplained.size(), 1u);
    const Unexplained& open = report.accounting.unexplained.front();
    EXPECT_EQ(open.category, Exposed::waiting);
    EXPECT_NEAR(open.share, 0.75 * 0.30, 0.01);
    EXPECT_EQ(open.ranks, (std::vector<int>{0, 1, 3}));
    ASSERT_EQ(open.waitedFor.size(), 1u);
    EXPECT_EQ(open.waitedFor.front().rank, 2);
    EXPECT_FALSE(report::isClean(report));
    const std::string sentence = report::unexplainedSentences(report.accounting).front();
    EXPECT_NE(sentence.find("22.5 % of the step is waiting for other ranks (ranks 0-1, 3), 100 % of it for rank 2"),
              std::string::npos)
        << sentence;
    EXPECT_EQ(report::verdictText(report).find("No finding"), std::string::npos);
    // Every format says the same sentence.
    std::string text = report::renderText(report);
    std::replace(text.begin(), text.end(), '\n', ' ');
    EXPECT_NE(text.find(sentence), std::string::npos) << text;
    EXPECT_NE(report::renderMarkdown(report).find(sentence), std::string::npos);
    EXPECT_NE(report::renderHtml(report).find(sentence), std::string::npos);
    const auto json = nlohmann::json::parse(report::renderJson(report));
    ASSERT_EQ(json["unexplained"].size(), 1u);
    EXPECT_EQ(json["unexplained"][0]["category"], "waiting");
    EXPECT_EQ(json["unexplained"][0]["waited_for"], nlohmann::json::array({2}));
    for (const char* key : {"share", "ns_per_step", "ranks", "settle"})
        EXPECT_TRUE(json["unexplained"][0].contains(key)) << key;
}

TEST(Unexplained, UpToATenthOfTheStepIsSilent) {
    const report::Report report = lateBeginner(12 * test::kMs).analyze();  // three of four ranks wait 12 %
    EXPECT_EQ(test::idsIn(report), "");
    EXPECT_TRUE(report.accounting.unexplained.empty());
    EXPECT_TRUE(report::verdictText(report).starts_with("No finding")) << report::verdictText(report);
}

TEST(Unexplained, WhatAFindingCostsIsAccountedForByIt) {
    test::DdpJob job;
    job.slow = {{5, 1.5}};
    const report::Report report = test::playDdp(job).analyze();
    ASSERT_EQ(test::foundIn(report), "RS301[5]");
    const Account& waiting = accountOf(report, Exposed::waiting);
    EXPECT_GT(waiting.share, AccountingThresholds::kWorthSaying);
    EXPECT_LT(waiting.unexplained, 0.03);
    ASSERT_FALSE(waiting.parts.empty());
    EXPECT_EQ(waiting.parts.front().by, "RS301");
    EXPECT_TRUE(report.accounting.unexplained.empty()) << report::verdictText(report);
}

TEST(Unexplained, WaitingForARankWhoseWorkIsToBeSharedIsAllOfItsFinding) {
    // Balanced, the others compute more than now: the repair saves less than they wait.
    const report::Report report = fourRanks({0, 0, 0, 0}, {8, 4, 4, 4}).analyze();
    ASSERT_EQ(test::foundIn(report), "RS304[0]");
    EXPECT_NEAR(accountOf(report, Exposed::waiting).share, 0.75 * 0.40, 0.01);
    EXPECT_LT(report.findings.front().worthNs(), 35e6);
    EXPECT_LT(accountOf(report, Exposed::waiting).unexplained, 0.01) << report::verdictText(report);
    EXPECT_TRUE(report.accounting.unexplained.empty());
}

TEST(Unexplained, SharesOfAnAccountAddUpToIt) {
    for (const report::Report& report :
         {lateBeginner(30 * test::kMs).analyze(), test::playDdp({}).analyze(), test::playPipeline({}).analyze()}) {
        for (const Account& account : report.accounting.accounts) {
            double sum = account.unexplained;
            for (const AccountPart& part : account.parts) sum += part.share;
            EXPECT_NEAR(sum, account.share, 1e-9) << toText(account.category);
        }
    }
}

TEST(Unexplained, TransferWithoutALinkPeakIsNotCalledHealthy) {
    test::FsdpJob job;
    job.wire.busBytesPerNs = 15;  // far more than compute hides
    job.linksKnown = false;
    job.steps = 2;  // too few for a certain finding, or none at all
    const report::Report report = test::playFsdp(job).analyze();
    ASSERT_FALSE(report.accounting.unexplained.empty());
    EXPECT_EQ(report.accounting.unexplained.front().category, Exposed::transfer);
    EXPECT_EQ(report::verdictText(report).find("No finding: "), std::string::npos) << report::verdictText(report);
}

TEST(NotJudged, EachDiagnosisSaysWhatItLacks) {
    test::DdpJob job;
    EXPECT_EQ(needOf(test::playDdp(job).analyze(), "RS203"), "");
    job.linksKnown = false;
    const report::Report report = test::playDdp(job).analyze();
    EXPECT_NE(needOf(report, "RS203").find("no link peak"), std::string::npos);
    EXPECT_NE(needOf(report, "RS401").find("no launch rows"), std::string::npos);  // the job on paper has no host calls
    EXPECT_EQ(needOf(report, "RS101"), "");  // a job without a pipeline lacks nothing for it
    EXPECT_TRUE(std::is_sorted(report.notJudged.begin(), report.notJudged.end(),
                               [](const NotJudged& a, const NotJudged& b) { return a.id < b.id; }));
    EXPECT_NE(report::renderText(report).find("Not judged"), std::string::npos);
    EXPECT_NE(report::renderMarkdown(report).find("## Not judged"), std::string::npos);
    EXPECT_NE(report::renderHtml(report).find("not-judged"), std::string::npos);
    const auto json = nlohmann::json::parse(report::renderJson(report));
    ASSERT_EQ(json["not_judged"].size(), report.notJudged.size());
    EXPECT_EQ(json["not_judged"][0]["id"], report.notJudged.front().id);
}

TEST(NotJudged, OneLineForAllThatLackTheSame) {
    EXPECT_EQ(
        report::notJudgedLines({{"RS203", "no link peak"}, {"RS401", "no launch rows"}, {"RS204", "no link peak"}}),
        (std::vector<std::string>{"RS203, RS204: no link peak", "RS401: no launch rows"}));
}

TEST(LateTransfer, OfASlowRanksVictimsIsNotTheNetworks) {
    test::FsdpJob healthy;
    healthy.noise = 0;
    test::FsdpJob slow = healthy;
    slow.slow = {{5, 1.5}};
    const report::Report before = test::playFsdp(healthy).analyze(), after = test::playFsdp(slow).analyze();
    const auto transfer = [](const report::Report& report) { return accountOf(report, Exposed::transfer).share; };
    EXPECT_NEAR(transfer(after), transfer(before), 0.03);
    ASSERT_FALSE(after.delays.byRank.empty());
    const job::Delay& worst = after.delays.byRank.front();
    EXPECT_EQ(worst.rank, 5);
    EXPECT_GT(worst.share, 0.95);
    EXPECT_EQ(worst.victims, (std::vector<int>{0, 1, 2, 3, 4, 6, 7}));
    EXPECT_NEAR(worst.nsPerStep(), after.run.stepNs - before.run.stepNs, 0.1 * (after.run.stepNs - before.run.stepNs));
    const auto json = nlohmann::json::parse(report::renderJson(after));
    EXPECT_EQ(json["delays"][0]["rank"], 5);
    EXPECT_NE(report::renderText(after).find("rank 5 costs ranks 0-4, 6-7"), std::string::npos)
        << report::renderText(after);
}

TEST(Unknown, OneRankIsBalancedWithNobody) {
    test::TraceFixture job(1, 1);
    for (int step = 0; step < 4; ++step) {
        job.step(0, step, step * 10 * test::kMs, 10 * test::kMs);
        job.kernel(0, step * 10 * test::kMs, 10 * test::kMs, "gemm", 64);
    }
    const auto json = nlohmann::json::parse(report::renderJson(job.analyze()));
    EXPECT_TRUE(json["efficiency"]["load_balance"].is_null());
    EXPECT_TRUE(json["efficiency"]["serialisation"].is_null());
    EXPECT_NEAR(json["efficiency"]["parallel"].get<double>(), 1, 1e-9);
    EXPECT_EQ(json["run"]["ranks"], nlohmann::json::array({0}));
}

TEST(WrappedText, BreaksAtSpacesAndKeepsLongWords) {
    EXPECT_EQ(text::wrapped("one two three", "  ", 9), "  one two\n  three\n");
    EXPECT_EQ(text::wrapped("a-word-that-is-longer x", "", 8), "a-word-that-is-longer\nx\n");
    EXPECT_EQ(text::wrapped("slow by 12 % now", "", 10), "slow by\n12 % now\n") << "a number stays with its sign";
    EXPECT_EQ(text::wrapped("", "  "), "  \n");
}

}  // namespace
}  // namespace rankscope::diagnose

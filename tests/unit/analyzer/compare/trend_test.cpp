// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/trend.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rankscope::compare {
namespace {

constexpr int64_t kDayNs = 86'400'000'000'000, kFirstDayNs = 20'400 * kDayNs;  // 2025-11-08

/// Runs of one entry: `factors` of 100 ms.
std::vector<RunSummary> entryOf(const std::string& label, int day, const std::vector<double>& factors,
                                const std::string& world = "4") {
    std::vector<RunSummary> runs;
    for (const double factor : factors) {
        RunSummary run;
        run.name = label + "-" + std::to_string(runs.size() + 1);
        run.label = label;
        run.startUnixNs = kFirstDayNs + day * kDayNs;
        run.stepsNs = std::vector<double>(20, 100e6 * factor);
        run.steps = 20;
        run.environment = {{"world_size", world}, {"layout", "data parallel"}, {"virtual", "yes"}};
        runs.push_back(run);
    }
    return runs;
}

FindingSummary findingOf(const std::string& id, const std::string& role, double savingNs) {
    FindingSummary finding;
    finding.id = id;
    finding.title = "straggler rank";
    finding.verdict = "found";
    finding.ranks = {3};
    finding.roles = {role};
    finding.savingNs = savingNs;
    return finding;
}

void addRuns(std::vector<RunSummary>& to, std::vector<RunSummary> more) {
    to.insert(to.end(), more.begin(), more.end());
}

/// Eight entries at 100 ms, then four at 110 ms.
std::vector<RunSummary> slowedHistory() {
    std::vector<RunSummary> runs;
    for (int day = 0; day < 12; ++day) {
        const double level = day < 8 ? 1 : 1.1;
        addRuns(runs, entryOf("c" + std::to_string(day), day, {level, level * 1.002, level * 0.998}));
    }
    return runs;
}

TEST(Trend, TellsLevelsAndHowFarTheStepHasMoved) {
    const Trend trend = trendOf("ci/baseline", slowedHistory());
    ASSERT_EQ(trend.kinds.size(), 1u);
    const TrendOfKind& kind = trend.kinds.front();
    EXPECT_EQ(kind.name, "4 ranks, data parallel, virtual GPUs");
    ASSERT_EQ(kind.levels.size(), 2u);
    EXPECT_EQ(kind.levels[1].first, "c8");
    EXPECT_NEAR(*kind.lastRatio(), 1.1, 1e-3);
    ASSERT_EQ(kind.entries.size(), 12u);
    EXPECT_EQ(kind.entries[7].level, 0u);
    EXPECT_EQ(kind.entries[8].level, 1u);
    EXPECT_EQ(trendSentence(kind), "the step is 110 ms, for 4 entries now: 10.0 % slower than the level before");
}

TEST(Trend, AFindingComesAndGoesByHalfOfTheRuns) {
    std::vector<RunSummary> runs;
    addRuns(runs, entryOf("a", 0, {1, 1, 1}));
    addRuns(runs, entryOf("b", 1, {1, 1, 1}));
    addRuns(runs, entryOf("c", 2, {1, 1, 1}));
    addRuns(runs, entryOf("d", 3, {1, 1, 1}));
    for (const size_t run : {3, 4, 6, 7}) runs[run].findings = {findingOf("RS301", "dp 3", 5e6)};
    runs[9].findings = {findingOf("RS402", "dp 0", 5e6)};  // one of three: not of the entry
    const TrendOfKind kind = trendOf("b", runs).kinds.front();
    EXPECT_TRUE(kind.entries[0].came.empty());
    ASSERT_EQ(kind.entries[1].came.size(), 1u);
    EXPECT_EQ(kind.entries[1].came[0].id, "RS301");
    EXPECT_EQ(kind.entries[1].came[0].where, "rank 3");
    EXPECT_EQ(kind.entries[1].came[0].savingNs, 5e6);
    EXPECT_TRUE(kind.entries[2].came.empty());
    EXPECT_TRUE(kind.entries[2].went.empty());
    ASSERT_EQ(kind.entries[3].went.size(), 1u);
    EXPECT_TRUE(kind.entries[3].findings.empty());
}

TEST(Trend, KindsOfJobsAreApartTheNewestFirst) {
    std::vector<RunSummary> runs = slowedHistory();
    addRuns(runs, entryOf("eight", 20, {0.5, 0.5, 0.5}, "8"));
    addRuns(runs, entryOf("four", 21, {1.1, 1.1, 1.1}));
    runs.push_back({});  // without a step
    const Trend trend = trendOf("b", runs);
    EXPECT_EQ(trend.runs, 43);
    EXPECT_EQ(trend.withoutSteps, 1);
    ASSERT_EQ(trend.kinds.size(), 2u);
    EXPECT_EQ(trend.kinds[0].entries.back().label, "four");
    EXPECT_EQ(trend.kinds[0].entries.size(), 13u);
    EXPECT_EQ(trend.kinds[1].entries.size(), 1u);
    EXPECT_EQ(trend.kinds[1].lastRatio(), std::nullopt);
}

TEST(Trend, RunsWithoutALabelAreEntriesOfTheirOwn) {
    std::vector<RunSummary> runs = entryOf("", 0, {1, 1.01, 0.99});
    runs[2].startUnixNs = 0;
    const TrendOfKind kind = trendOf("b", runs).kinds.front();
    ASSERT_EQ(kind.entries.size(), 3u);
    EXPECT_EQ(kind.noise, std::nullopt) << "what runs of one entry differ by was seen nowhere";
    EXPECT_NE(renderTrendText(trendOf("b", runs), 20).find("not known"), std::string::npos);
    EXPECT_EQ(kind.entries[2].startUnixNs, std::nullopt);
}

TEST(Trend, AnEmptyBaselineIsSaidInEveryFormat) {
    const Trend trend = trendOf("b", {});
    EXPECT_EQ(renderTrendText(trend, 20), "b: no run yet\n");
    EXPECT_NE(renderTrendHtml(trend).find("holds no run"), std::string::npos);
    EXPECT_NE(renderTrendBadge(trend).find("no runs"), std::string::npos);
    EXPECT_TRUE(nlohmann::json::parse(renderTrendJson(trend)).at("kinds").empty());
}

TEST(Trend, TextListsLevelsEntriesAndWhatCame) {
    std::vector<RunSummary> runs = slowedHistory();
    for (size_t i = 24; i < runs.size(); ++i) runs[i].findings = {findingOf("RS301", "dp 3", 5e6)};
    const std::string text = renderTrendText(trendOf("ci/baseline", runs), 5);
    EXPECT_NE(text.find("      2  c8                c11                     4    12    110 ms  +10.0 %\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("  c8                2025-11-16     3    110 ms      2  "), std::string::npos) << text;
    EXPECT_NE(text.find("came  RS301 straggler rank, rank 3, its repair saves 5 ms a step\n"), std::string::npos);
    EXPECT_EQ(text.find("  c6  "), std::string::npos) << "only the last five entries";
    EXPECT_NE(text.find("7 entries are older"), std::string::npos);
}

TEST(Trend, ThePageSaysWhichCommitHowMuchWhyAndWhatToDo) {
    std::vector<RunSummary> runs = slowedHistory();
    for (size_t i = 24; i < runs.size(); ++i) runs[i].findings = {findingOf("RS301", "dp 3", 5e6)};
    const std::string page = renderTrendHtml(trendOf("ci/baseline", runs));
    EXPECT_NE(page.find("10.0 % slower than the level before"), std::string::npos);
    EXPECT_NE(
        page.find("It began with c8 (2025-11-16). With it came RS301 straggler rank, rank 3, its repair saves 5 ms "
                  "a step. If that is wanted: rankscope baseline accept --dir ci/baseline --label c8; if not: "
                  "rankscope explain RS301"),
        std::string::npos);
}

TEST(Trend, LabelsOfStrangersAreNoMarkupAndNoEscapeSequences) {
    std::vector<RunSummary> runs = entryOf("<b>\x1b[31m", 0, {1, 1, 1});
    addRuns(runs, entryOf("c1", 1, {1, 1, 1}));
    const Trend trend = trendOf("<i>\x1b[0m", runs);
    EXPECT_EQ(renderTrendHtml(trend).find("<b>\x1b"), std::string::npos);
    EXPECT_EQ(renderTrendHtml(trend).find("<i>"), std::string::npos);
    EXPECT_EQ(renderTrendText(trend, 20).find('\x1b'), std::string::npos);
}

TEST(Trend, TheBadgeIsRedOnlyForASlowerLevelThatNobodyAccepted) {
    std::vector<RunSummary> runs = slowedHistory();
    EXPECT_NE(renderTrendBadge(trendOf("b", runs)).find("#cf222e"), std::string::npos);
    for (size_t i = 24; i < 27; ++i) runs[i].beginsLevel = true;
    EXPECT_NE(renderTrendBadge(trendOf("b", runs)).find("#1a7f37"), std::string::npos);
}

}  // namespace
}  // namespace rankscope::compare

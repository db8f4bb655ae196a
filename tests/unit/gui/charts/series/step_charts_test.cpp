// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/step_charts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/gui/chart_fixture.h"

namespace rankscope::gui::test {
namespace {

StepTable table(std::initializer_list<StepRow> rows) {
    return {rows, false, {}};
}

TEST(StragglerMap, ShowsWhoComputesLongerThanTheOthers) {
    const StepTable steps = table({{0, 0, 0, 100, false, 50, 40},
                                   {0, 1, 100, 100, false, 50, 40},
                                   {1, 0, 0, 100, false, 75, 0},
                                   {1, 1, 100, 100, false, 50, 40},
                                   {2, 0, 0, 100, false, 50, 40},
                                   {2, 1, 100, 100, false, 50, 40}});
    const GridChart chart = stragglerMap(steps, StepMeasure::compute);
    ASSERT_EQ(chart.rows.labels.size(), 3u);
    ASSERT_EQ(chart.columns.labels.size(), 2u);
    EXPECT_FLOAT_EQ(chart.at(0, 1), 0.5f);
    EXPECT_FLOAT_EQ(chart.at(1, 1), 0);
    EXPECT_FLOAT_EQ(chart.at(0, 0), 0);
    EXPECT_EQ(chart.targetOf(0, 1).rank, 1);
    EXPECT_EQ(chart.targetOf(0, 1).rowId, 0);
    EXPECT_EQ(chart.targetOf(0, 1).table, EventTable::step);
    EXPECT_FLOAT_EQ(stragglerMap(steps, StepMeasure::waiting).at(0, 1), 0);
    EXPECT_FLOAT_EQ(stragglerMap(steps, StepMeasure::waiting).at(0, 2), 40);
}

TEST(StragglerMap, AStallShowsInTheOwnTimeOfWhoStalled) {
    // Rank 1 computes as long as the others but stands still for 60 of 160 ns; the others wait for it.
    const StepTable steps =
        table({{0, 0, 0, 160, false, 90, 60}, {1, 0, 0, 160, false, 90, 0}, {2, 0, 0, 160, false, 90, 60}});
    EXPECT_FLOAT_EQ(stragglerMap(steps, StepMeasure::compute).at(0, 1), 0);
    EXPECT_FLOAT_EQ(stragglerMap(steps, StepMeasure::own).at(0, 1), 0.6f);
    EXPECT_FLOAT_EQ(stragglerMap(steps, StepMeasure::own).at(0, 0), 0);
}

// Two stages of three ranks; the second has more layers, and rank 1 of the first is late.
TEST(StragglerMap, ARankIsComparedWithThoseOfItsStage) {
    StepTable steps;
    for (int32_t rank = 0; rank < 6; ++rank) {
        steps.rows.push_back({rank, 0, 0, 200, false, rank == 1 ? 75 : rank < 3 ? 50 : 100, 0});
        steps.stages[rank] = rank / 3;
    }
    const GridChart chart = stragglerMap(steps, StepMeasure::compute);
    EXPECT_FLOAT_EQ(chart.at(0, 1), 0.5f);
    for (const size_t rank : {0, 2, 3, 4, 5}) EXPECT_FLOAT_EQ(chart.at(0, rank), 0) << rank;
    EXPECT_NE(chart.note.find("its stage"), std::string::npos);
    steps.stages.clear();
    EXPECT_LT(stragglerMap(steps, StepMeasure::compute).at(0, 0), 0) << "where stages are not known all are peers";
}

TEST(StragglerMap, OneSlowStepAmongThousandsStaysVisible) {
    StepTable steps;
    for (int rank = 0; rank < 1'024; ++rank)
        for (int step = 0; step < 3'000; step += rank == 700 ? 1 : 100)
            steps.rows.push_back({rank, step, step * 100, 100, false, rank == 700 && step == 1'777 ? 90 : 50, 0});
    // The steps that all ranks have give the medians; of the others rank 700 is its own median.
    for (StepRow& row : steps.rows)
        if (row.rank == 700 && row.step == 1'700) row.computeNs = 95;
    const GridChart chart = stragglerMap(steps, StepMeasure::compute);
    EXPECT_LE(chart.rows.labels.size(), kMostMapRows);
    EXPECT_LE(chart.columns.labels.size(), kMostMapColumns);
    float most = 0;
    ChartTarget at;
    for (size_t row = 0; row < chart.rows.labels.size(); ++row) {
        for (size_t column = 0; column < chart.columns.labels.size(); ++column) {
            if (std::isnan(chart.at(column, row)) || chart.at(column, row) <= most) continue;
            most = chart.at(column, row);
            at = chart.targetOf(column, row);
        }
    }
    EXPECT_FLOAT_EQ(most, 0.9f);
    EXPECT_EQ(at.rank, 700);
    EXPECT_EQ(at.rowId, 1'700);
}

TEST(StragglerMap, SaysWhatIsMissing) {
    EXPECT_NE(stragglerMap({}, StepMeasure::duration).nothing.find("No steps"), std::string::npos);
    const StepTable bare = table({{0, 0, 0, 100, false, {}, {}}, {1, 0, 0, 100, false, {}, {}}});
    EXPECT_NE(stragglerMap(bare, StepMeasure::compute).nothing.find("rankscope analyze"), std::string::npos);
    EXPECT_EQ(stragglerMap(bare, StepMeasure::duration).nothing, "");
    EXPECT_NE(stragglerMap(table({{0, 0, 0, 100, false, 50, 0}}), StepMeasure::compute).nothing.find("One rank"),
              std::string::npos);
}

TEST(StepHistogram, CountsEveryStepOnceAndLeavesOutWarmUp) {
    const StepTable steps = table({{0, 0, 0, 900, true, {}, {}},
                                   {0, 1, 900, 100, false, {}, {}},
                                   {0, 2, 1'000, 200, false, {}, {}},
                                   {3, 1, 900, 100, false, {}, {}}});
    const GridChart chart = stepHistogram(steps);
    ASSERT_EQ(chart.nothing, "");
    ASSERT_LE(chart.columnTotals.size(), kHistogramBins);
    EXPECT_EQ(chart.columns.labels.front(), "100 ns to 105 ns");
    EXPECT_DOUBLE_EQ(chart.columnTotals.front(), 2);
    EXPECT_DOUBLE_EQ(chart.columnTotals.back(), 1);
    EXPECT_FLOAT_EQ(chart.at(0, 0), 1);
    EXPECT_FLOAT_EQ(chart.at(0, 1), 1);
    EXPECT_EQ(chart.targetOf(chart.columnTotals.size() - 1, 0).rowId, 2);
    EXPECT_EQ(chart.targetOf(0, 1).rank, 3);
}

TEST(StepHistogram, AStepThatIsFarOutLeavesTheOthersTheirBins) {
    StepTable steps = table({});
    for (int step = 0; step < 40; ++step)
        steps.rows.push_back({0, step, step * 1'000, 1'000 + 10 * (step % 8), false, {}, {}});
    steps.rows.push_back({0, 40, 40'000, 90'000, false, {}, {}});
    const GridChart chart = stepHistogram(steps);
    ASSERT_LE(chart.columnTotals.size(), kHistogramBins);
    EXPECT_GE(std::count_if(chart.columnTotals.begin(), chart.columnTotals.end(), [](double n) { return n > 0; }), 9);
    EXPECT_DOUBLE_EQ(chart.columnTotals.back(), 1);
    EXPECT_NE(chart.columns.labels.back().find("and more"), std::string::npos) << chart.columns.labels.back();
    EXPECT_EQ(chart.targetOf(chart.columnTotals.size() - 1, 0).rowId, 40);
    double counted = 0;
    for (const double total : chart.columnTotals) counted += total;
    EXPECT_DOUBLE_EQ(counted, 41);
}

TEST(StragglerMap, StepTimesHaveTheSeriesOfTheMedianRankAboveThem) {
    const StepTable steps = table({{0, 0, 0, 100, false, {}, {}},
                                   {0, 1, 100, 300, false, {}, {}},
                                   {1, 0, 0, 100, false, {}, {}},
                                   {1, 1, 100, 320, false, {}, {}}});
    EXPECT_EQ(stragglerMap(steps, StepMeasure::duration).columnTotals, (std::vector<double>{100, 300}));
    EXPECT_TRUE(stragglerMap(steps, StepMeasure::compute).columnTotals.empty());
}

TEST(StepHistogram, StepsThatAreAlikeLookAlike) {
    const StepTable steps = table({{0, 0, 0, 100'000, false, {}, {}}, {0, 1, 0, 100'010, false, {}, {}}});
    const GridChart chart = stepHistogram(steps);
    double most = 0;
    for (const double total : chart.columnTotals) most = std::max(most, total);
    EXPECT_DOUBLE_EQ(most, 2);
    EXPECT_NE(stepHistogram(table({{0, 0, 0, 0, false, {}, {}}})).columnTotals.size(), 0u);
    EXPECT_NE(stepHistogram(table({{0, 0, 0, 10, true, {}, {}}})).nothing.find("warm-up"), std::string::npos);
}

TEST(StepTable, FindsStepsByNumberAndTime) {
    ChartFixture job(2);
    job.step(0, 3, 1'000, 100, 60);
    job.step(0, 4, 1'100, 100);
    job.step(1, 3, 990, 120);
    job.sql("INSERT INTO step VALUES (0, -7, 5, 5, 0), (-3, 1, 5, 5, 0), (1, 9, 5, -5, 0)");
    auto reader = job.reader();
    const StepTable steps = readStepTable(reader);
    ASSERT_EQ(steps.rows.size(), 3u);
    EXPECT_EQ(steps.rows[0].computeNs, 60);
    EXPECT_FALSE(steps.rows[1].computeNs);
    EXPECT_EQ(steps.find(0, 4), 1u);
    EXPECT_EQ(steps.find(1, 4), 3u);
    EXPECT_EQ(steps.at(0, 1'099), 0u);
    EXPECT_EQ(steps.at(0, 1'100), 1u);
    EXPECT_EQ(steps.at(0, 999), 3u);
    EXPECT_EQ(steps.at(1, 1'110), 3u);
    EXPECT_EQ(steps.at(2, 0), 3u);
}

}  // namespace
}  // namespace rankscope::gui::test

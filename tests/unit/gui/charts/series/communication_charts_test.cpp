// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "gui/charts/series/bandwidth_chart.h"
#include "gui/charts/series/communication_matrix.h"
#include "gui/charts/series/link_matrix.h"
#include "gui/charts/series/roofline_chart.h"
#include "tests/unit/gui/chart_fixture.h"

namespace rankscope::gui::test {
namespace {

TEST(CommunicationMatrix, CountsWhatEachRankOwesEachOther) {
    ChartFixture job(4);
    job.communicator(1, {0, 1, 2, 3});
    job.communicator(2, {2, 3});
    job.collective(1, 1, "all_reduce", 1'000, 50, {0, 1, 2, 3});
    job.collective(2, 1, "all_gather", 400, 50, {0, 1, 2, 3});
    job.collective(3, 2, "reduce_scatter", 6'000, 50, {2, 3});
    job.message(1, 0, 1, 7, 10, 20);
    auto reader = job.reader();
    const GridChart chart = communicationMatrix(reader);
    ASSERT_EQ(chart.nothing, "");
    EXPECT_FLOAT_EQ(chart.at(1, 0), 500 + 100 + 7);  // column 1, row 0: from rank 0 to rank 1
    EXPECT_FLOAT_EQ(chart.at(0, 1), 500 + 100);
    EXPECT_FLOAT_EQ(chart.at(3, 2), 500 + 100 + 3'000);
    EXPECT_TRUE(std::isnan(chart.at(2, 2)));
    // A row holds the bytes on the bus: 3/4 x (2 x 1000 + 400) of rank 0, and its message.
    float row = 0;
    for (size_t column = 0; column < 4; ++column) row += column == 0 ? 0 : chart.at(column, 0);
    EXPECT_FLOAT_EQ(row, 1'800 + 7);
}

TEST(CommunicationMatrix, RootedOperationsGoFromOrToTheRoot) {
    ChartFixture job(3);
    job.communicator(1, {0, 1, 2});
    job.sql(
        "INSERT INTO nccl_call (id, rank, start_ns, dur_ns, op, peer, evidence) VALUES (9, 0, 0, 1, 'broadcast', 2, "
        "1)");
    job.collective(1, 1, "broadcast", 100, 50, {0, 1, 2});
    job.sql("UPDATE collective_member SET call_id = 9");
    auto reader = job.reader();
    const GridChart chart = communicationMatrix(reader);
    EXPECT_FLOAT_EQ(chart.at(0, 2), 100);
    EXPECT_FLOAT_EQ(chart.at(1, 2), 100);
    EXPECT_TRUE(std::isnan(chart.at(2, 0)));
}

TEST(CommunicationMatrix, ACellLeadsToTheLargestOperationOfThePair) {
    ChartFixture job(3);
    job.communicator(1, {0, 1, 2});
    job.collective(1, 1, "all_reduce", 10, 50, {0, 1, 2});
    job.collective(2, 1, "all_reduce", 90, 50, {0, 1, 2});
    job.message(5, 0, 1, 100'000, 10, 20);
    auto reader = job.reader();
    const GridChart chart = communicationMatrix(reader);
    const ChartTarget collective = chart.targetOf(2, 1), message = chart.targetOf(1, 0);
    EXPECT_EQ(collective.table, EventTable::kernel);
    EXPECT_EQ(collective.rowId, 201);
    EXPECT_EQ(collective.rank, 1);
    EXPECT_EQ(message.table, EventTable::ncclCall);
    EXPECT_EQ(message.rowId, 5);
    EXPECT_EQ(message.rank, 0);
}

TEST(CommunicationMatrix, ManyRanksShareCellsAndLoseNoBytes) {
    constexpr int kRanks = 1'024;
    ChartFixture job(kRanks, 8);
    job.sql("INSERT INTO communicator VALUES (1, 1, 'comm_hash', {}, NULL, NULL, 128)", kRanks);
    for (int rank = 0; rank < kRanks; ++rank)
        job.sql("INSERT INTO communicator_member (communicator_id, comm_rank, rank) VALUES (1, {0}, {0})", rank);
    job.collective(1, 1, "all_gather", 1'024'000, 50, {0});
    auto reader = job.reader();
    const GridChart chart = communicationMatrix(reader);
    ASSERT_LE(chart.columns.labels.size(), kMostMatrixCells);
    double sum = 0;
    for (const float bytes : chart.values) sum += std::isnan(bytes) ? 0 : static_cast<double>(bytes);
    EXPECT_NEAR(sum, 1'000.0 * kRanks * (kRanks - 1), 1e-4 * sum);
    EXPECT_TRUE(chart.targetOf(3, 400).valid());
}

TEST(CommunicationMatrix, SaysWhyThereIsNone) {
    ChartFixture one(1), silent(4);
    auto oneReader = one.reader(), silentReader = silent.reader();
    EXPECT_NE(communicationMatrix(oneReader).nothing.find("One rank"), std::string::npos);
    EXPECT_NE(communicationMatrix(silentReader).nothing.find("No collective"), std::string::npos);
}

TEST(BandwidthChart, ShowsBusBandwidthFitAndCeiling) {
    ChartFixture job(4, 2);
    job.sql("INSERT INTO meta VALUES ('links', 'intra:gbps=200;inter:gbps=40')");
    job.communicator(1, {0, 1, 2, 3});
    int id = 1;
    for (const int64_t bytes : {100'000, 1'000'000, 10'000'000, 100'000'000})
        job.collective(id++, 1, "all_reduce", bytes, 30'000 + bytes / 50,
                       {0, 1, 2, 3});  // 50 B/ns of message, 75 on the bus
    auto reader = job.reader();
    const ScatterChart chart = bandwidthChart(reader);
    ASSERT_EQ(chart.series, std::vector<std::string>{"all-reduce of 4 on 2 hosts"});
    ASSERT_EQ(chart.points.size(), 4u);
    EXPECT_DOUBLE_EQ(chart.points[0].y, 100'000 / 32'000.0 * 1.5);
    EXPECT_EQ(chart.points[0].target.table, EventTable::kernel);
    EXPECT_EQ(chart.points[0].target.rowId, 100);
    ASSERT_EQ(chart.lines.size(), 2u);
    EXPECT_EQ(chart.lines[0].name, "fit: start-up 30.0 us, 75 GB/s");
    // Two cards a node, and the best algorithm: a tree between two nodes sends each sum once.
    EXPECT_EQ(chart.lines[1].name, "ceiling 160 GB/s");
    EXPECT_DOUBLE_EQ(chart.lines[1].points[0].second, 160);
}

TEST(BandwidthChart, ShowsTheLineThatTheReportTells) {
    ChartFixture job(4);
    job.communicator(1, {0, 1});
    job.communicator(2, {2, 3});
    job.sql(
        "INSERT INTO cost_fit VALUES (1, 'all_reduce', 53400, 0.011, NULL, 'fit', 'data parallel 0-1'), (2, "
        "'all_reduce', 70000, 0.011, 100, 'fit', 'data parallel 2-3')");
    job.collective(1, 2, "all_reduce", 1'000'000, 35'000, {2, 3});
    job.collective(2, 1, "all_reduce", 1'000'000, 35'000, {0, 1});
    auto reader = job.reader();
    const ScatterChart chart = bandwidthChart(reader);
    ASSERT_EQ(chart.lines.size(), 1u);
    EXPECT_EQ(chart.lines[0].name, "start-up 53.4 us, fitted: data parallel 0-1");
}

TEST(BandwidthChart, OneSizeAndAPeakTellTheStartUp) {
    ChartFixture job(2);
    job.sql("INSERT INTO meta VALUES ('links', 'intra:gbps=100')");
    job.communicator(1, {0, 1});
    job.collective(1, 1, "all_reduce", 1'000'000, 35'000, {0, 1});
    auto reader = job.reader();
    const ScatterChart chart = bandwidthChart(reader);
    ASSERT_EQ(chart.lines.size(), 2u);
    EXPECT_EQ(chart.lines[0].name, "start-up 25.0 us at the ceiling's rate");
}

TEST(BandwidthChart, WithoutPeaksAndSizesThereIsNoLine) {
    ChartFixture job(2);
    job.communicator(1, {0, 1});
    job.collective(1, 1, "all_gather", 1'000, 10, {0, 1});
    auto reader = job.reader();
    const ScatterChart chart = bandwidthChart(reader);
    EXPECT_EQ(chart.points.size(), 1u);
    EXPECT_TRUE(chart.lines.empty());
    EXPECT_NE(chart.note.find("--links"), std::string::npos);
}

TEST(LinkMatrix, BetweenHostsNetworkTransfersTellElseMessages) {
    ChartFixture job(4, 2);
    job.communicator(1, {0, 2});
    job.communicator(2, {3, 1});
    const auto proxy = [&](int id, int rank, int communicator, int peer, int64_t bytes, int64_t networkNs,
                           const char* behalf = "NULL") {
        job.sql("INSERT INTO proxy_op VALUES ({}, {}, {}, {}, 0, {}, 0, {}, 1, {}, 1, 0, 0, {}, {})", id, rank,
                communicator, 70 + id, networkNs, peer, bytes, networkNs, behalf);
    };
    constexpr int64_t kMi = kLeastLinkBytes;
    proxy(1, 0, 1, 1, kMi, kMi / 40);      // rank 0 to rank 2: 40 bytes per ns
    proxy(2, 0, 1, 1, 3 * kMi, kMi / 10);  // three times the size in four times the time: 32 in all
    proxy(3, 0, 1, 1, kMi - 1, kMi);       // too small to tell of the link
    proxy(4, 3, 2, 1, 2 * kMi, kMi / 2);   // rank 3 to rank 1: 4
    proxy(5, 2, 1, 0, kMi, kMi, "0");      // another process' work
    job.message(1, 0, 1, 2 * kMi, 0, kMi / 50);
    job.message(2, 0, 2, 2 * kMi, 0, kMi);  // the network tells
    auto reader = job.reader();
    const GridChart chart = linkMatrix(reader);
    ASSERT_EQ(chart.nothing, "");
    EXPECT_NEAR(static_cast<double>(chart.at(2, 0)), 32, 0.01);
    EXPECT_NEAR(static_cast<double>(chart.at(1, 3)), 4, 0.01);
    EXPECT_NEAR(static_cast<double>(chart.at(1, 0)), 100, 0.01);
    EXPECT_TRUE(std::isnan(chart.at(0, 2)));
    EXPECT_EQ(chart.targetOf(2, 0).rowId, 72);
    EXPECT_EQ(chart.targetOf(1, 3).rank, 3);
}

TEST(LinkMatrix, SaysWhatItTakes) {
    ChartFixture job(2);
    auto reader = job.reader();
    EXPECT_NE(linkMatrix(reader).nothing.find("Nothing tells"), std::string::npos);
}

TEST(RooflineChart, ComputePerByteMeetsTheRoofAtTheRidge) {
    ChartFixture job(2);
    job.sql("INSERT INTO meta VALUES ('links', 'intra:gbps=100')");
    job.communicator(1, {0, 1});
    // One all-reduce of 2 ranks puts its size on the bus: 1 MB in 10 us at the peak, 20 us as seen.
    job.collective(1, 1, "all_reduce", 1'000'000, 20'000, {0, 1});
    for (const int rank : {0, 1}) job.step(rank, 0, 0, 100'000, 50'000);
    auto reader = job.reader();
    const ScatterChart chart = rooflineChart(reader);
    ASSERT_EQ(chart.nothing, "");
    ASSERT_EQ(chart.points.size(), 1u);  // both ranks are in one place
    EXPECT_EQ(chart.points[0].count, 2);
    EXPECT_EQ(chart.points[0].label, "ranks 0-1");
    EXPECT_DOUBLE_EQ(chart.points[0].x, 0.05);
    EXPECT_DOUBLE_EQ(chart.points[0].y, 0.5);
    EXPECT_EQ(chart.points[0].target.table, EventTable::step);
    ASSERT_EQ(chart.lines.size(), 2u);
    EXPECT_DOUBLE_EQ(chart.lines[0].points[1].first, 0.01);  // ridge = 1 / bandwidth
    EXPECT_DOUBLE_EQ(chart.lines[0].points[1].second, 1);
    EXPECT_DOUBLE_EQ(chart.lines[1].points[1].first, 0.02);
}

TEST(RooflineChart, SaysWhatIsMissing) {
    ChartFixture noSteps(2), notAnalyzed(2), silent(2);
    notAnalyzed.step(0, 0, 0, 10);
    silent.step(0, 0, 0, 10, 5);
    auto a = noSteps.reader(), b = notAnalyzed.reader(), c = silent.reader();
    EXPECT_NE(rooflineChart(a).nothing.find("No steps"), std::string::npos);
    EXPECT_NE(rooflineChart(b).nothing.find("rankscope analyze"), std::string::npos);
    EXPECT_NE(rooflineChart(c).nothing.find("No collective"), std::string::npos);
}

// Columns of a damaged file hold anything; the charts must come out finite and point at ranks that exist.
TEST(CommunicationCharts, SurviveNonsense) {
    ChartFixture job(3);
    job.communicator(1, {0, 1, 2});
    job.sql("UPDATE communicator SET n_ranks = -5");
    job.sql(
        "INSERT INTO communicator_member (communicator_id, comm_rank, rank) VALUES (1, 900000, 1), (1, 3, 77), (1, -4, "
        "0), (99, 0, 0)");
    int id = 1;
    for (const char* value : {"9223372036854775807", "-9223372036854775807", "'text'", "1e308", "0"})
        for (const char* op : {"all_reduce", "broadcast", "gather", "nonsense"})
            job.sql(
                "INSERT INTO collective VALUES ({}, {}, 0, '{}', {}, NULL, NULL, NULL, 3, {}, {}, {}, {}, {}, 1, {})",
                id, 1 + id % 2, op, value, value, value, value, value, value, value),
                ++id;
    job.sql("INSERT INTO collective_member SELECT id, 5000000000, NULL, NULL, bytes, bytes, 0, 0 FROM collective");
    for (const char* value : {"9223372036854775807", "-9223372036854775807", "'text'", "NULL"})
        job.sql(
            "INSERT INTO p2p (communicator_id, src_rank, dst_rank, seq, bytes, send_arrival_ns, send_end_ns, "
            "transfer_ns, complete) VALUES (1, 0, 1, 0, {0}, {0}, {0}, {0}, 1), (1, 5000000000, 1, 0, 1, 1, 1, 1, 1), "
            "(1, -1, 2, 0, 1, 1, 1, 1, 1), (1, 1, 1, 0, 1, 1, 1, 1, 1)",
            value);
    job.step(0, 0, INT64_MAX - 5, INT64_MAX, 5);
    job.step(1, 0, INT64_MIN + 5, 100, INT64_MAX);
    auto reader = job.reader();
    const GridChart matrix = communicationMatrix(reader);
    EXPECT_EQ(matrix.values.size(), 9u);
    for (size_t cell = 0; cell < matrix.values.size(); ++cell) EXPECT_LT(matrix.targetOf(cell % 3, cell / 3).rank, 3);
    const GridChart links = linkMatrix(reader);
    for (const float rate : links.values) EXPECT_TRUE(std::isnan(rate) || std::isfinite(rate));
    for (const ScatterChart& chart : {bandwidthChart(reader), rooflineChart(reader)}) {
        for (const ScatterPoint& point : chart.points) {
            EXPECT_TRUE(std::isfinite(point.x) && std::isfinite(point.y));
            EXPECT_LT(point.target.rank, 3);
        }
        for (const ScatterLine& line : chart.lines)
            for (const auto& [x, y] : line.points) EXPECT_TRUE(std::isfinite(x) && std::isfinite(y));
    }
}

}  // namespace
}  // namespace rankscope::gui::test

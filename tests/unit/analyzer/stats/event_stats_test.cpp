// SPDX-License-Identifier: Apache-2.0
// What ran, by name: groups of NCCL calls, medians, and bytes that nobody told.
#include "analyzer/stats/event_stats.h"

#include <gtest/gtest.h>

#include <limits>

#include "collector/store/sqlite.h"
#include "tests/unit/analyzer/trace_fixture.h"

namespace rankscope::stats {
namespace {

using Cell = StatsTable::Cell;

/// Four kernels on rank 0 and 1, two all-reduces, and a message; `sql` changes the file before it is read.
std::vector<StatsTable> statsOf(const std::string& sql, const EventStatsOptions& options = {}) {
    const test::TemporaryFolder folder;
    const auto file = folder.path() / "trace.db";
    test::TraceFixture fixture(2, 2);
    fixture.kernel(0, 0, 1000, "gemm", 8);
    fixture.kernel(0, 2000, 3000, "gemm", 8);
    fixture.kernel(1, 0, 8000, "gemm", 8);
    fixture.kernel(1, 9000, 2000, "gemm", 8);
    const int pair = fixture.communicator({0, 1});
    fixture.collective(pair, store::Op::allReduce, 4096, {20'000, 30'000}, 5000);
    fixture.collective(pair, store::Op::allReduce, 4096, {50'000, 50'000}, 5000);
    fixture.message(pair, 0, 1, 512, 70'000, 70'000, 1000);
    fixture.write(file);
    if (!sql.empty()) store::Database(file.string(), store::OpenMode::readWrite).execute(sql);
    store::TraceReader trace(file.string());
    return eventStats(trace, options);
}

/// The cell of a table's row, by the row's name and its column; fails where there is none.
Cell cellOf(const std::vector<StatsTable>& tables, const std::string& table, const std::string& name,
            const std::string& column) {
    for (const StatsTable& one : tables) {
        if (one.name != table) continue;
        for (const auto& row : one.rows)
            if (std::get<std::string>(row.back()) == name)
                for (size_t c = 0; c < one.columns.size(); ++c)
                    if (one.columns[c] == column) return row[c];
    }
    ADD_FAILURE() << table << " has no " << column << " of " << name;
    return {};
}

TEST(EventStats, MedianOfAnEvenNumberIsInTheMiddle) {
    const auto tables = statsOf("");
    EXPECT_EQ(cellOf(tables, "kernels", "gemm", "count"), Cell(int64_t{4}));
    EXPECT_EQ(cellOf(tables, "kernels", "gemm", "median_ns"), Cell(int64_t{2500}));
    EXPECT_EQ(cellOf(tables, "kernels", "gemm", "sum_ns"), Cell(int64_t{14'000}));
}

TEST(EventStats, RanksApart) {
    const auto tables = statsOf("", {true, 20});
    ASSERT_EQ(tables.front().columns.front(), "rank");
    EXPECT_EQ(cellOf(tables, "nccl", "all_reduce", "count"), Cell(int64_t{2}));
}

TEST(EventStats, CallsThatShareAKernelAreOne) {
    // Rank 0's all-reduces in one kernel of 15 us.
    const std::string merge =
        "UPDATE nccl_call SET kernel_id = (SELECT min(kernel_id) FROM nccl_call WHERE rank = 0 "
        "AND op = 'all_reduce') WHERE rank = 0 AND op ";
    const auto same = statsOf(merge + "= 'all_reduce'");
    EXPECT_EQ(cellOf(same, "nccl", "group: all_reduce", "count"), Cell(int64_t{1}));
    EXPECT_EQ(cellOf(same, "nccl", "group: all_reduce", "sum_ns"), Cell(int64_t{15'000}));
    EXPECT_EQ(cellOf(same, "nccl", "group: all_reduce", "bytes"), Cell(int64_t{8192}));
    EXPECT_EQ(cellOf(same, "nccl", "all_reduce", "count"), Cell(int64_t{2})) << "rank 1's";
    const auto mixed = statsOf(merge + "IN ('all_reduce', 'send')");
    EXPECT_EQ(cellOf(mixed, "nccl", "group: all_reduce + send", "sum_ns"), Cell(int64_t{15'000}));
}

TEST(EventStats, UnknownBytesAreNotZero) {
    const auto tables = statsOf("UPDATE nccl_call SET bytes = NULL WHERE id = 0 OR id = 1");
    EXPECT_EQ(cellOf(tables, "nccl", "all_reduce", "bytes"), Cell(std::monostate{}));
    EXPECT_EQ(cellOf(tables, "nccl", "send", "bytes"), Cell(int64_t{512}));
}

TEST(EventStats, SumsStopAtWhatTheyCanHold) {
    const auto tables = statsOf("UPDATE kernel SET dur_ns = 9000000000000000000 WHERE rank = 1");
    EXPECT_EQ(cellOf(tables, "kernels", "gemm", "sum_ns"), Cell(std::numeric_limits<int64_t>::max()));
}

}  // namespace
}  // namespace rankscope::stats

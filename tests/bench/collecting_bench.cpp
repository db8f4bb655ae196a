// SPDX-License-Identifier: Apache-2.0
// How fast captures become trace.db, beside what SQLite alone does with rows of eight integers on the same machine in
// the same minute.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "collector/collect.h"
#include "collector/store/reader.h"
#include "tests/bench/median_reporter.h"
#include "tests/unit/collector/capture_file.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr int kRanks = 8;
constexpr int kSteps = 1'000;
constexpr int kKernelsPerStep = 30;
constexpr int64_t kYardstickRows = 500'000;

/// A rank of a data-parallel job: kernels with their launches, reductions with calls and correlation, copies, waits,
/// ranges.
void writeRank(const fs::path& run, int rank) {
    test::CaptureFile file(run / "capture" / ("node0." + std::to_string(rank) + ".1.cap"),
                           {rank, kRanks, "node0", 1000 + rank, 0});
    file.stream(0, 7, 0);
    file.stream(1, 20, 0xabc);
    file.communicator(1, 0x1234, rank, kRanks);
    uint32_t correlation = 1;
    uint64_t callId = 1;
    int64_t ns = 1'000'000'000;
    for (int step = 0; step < kSteps; ++step) {
        file.push("train_step", ns);
        file.push("forward", ns + 100);
        for (int k = 0; k < kKernelsPerStep; ++k) {
            ns += 20'000;
            if (k == kKernelsPerStep / 2) {
                file.pop(ns - 100);
                file.push("backward", ns - 50);
            }
            file.kernel("gemm_" + std::to_string(k), 0, ns, 18'000, correlation, ns - 9'000);
            ++correlation;
            if (k % 10 != 9) continue;
            file.ncclCall(capture::NcclOp::allReduce, 1, 1 << 20, ns - 6'000, callId, 0xabc);
            file.kernel("ncclDevKernel_AllReduce", 1, ns + 500 + 10 * rank, 90'000, correlation, ns - 5'000);
            file.external(correlation++, callId++);
        }
        file.add(
            capture::MemcpyRecord{{capture::RecordType::memcpy, 1, 0}, correlation++, ns, 5'000, 1, 1, 3, 1, 1 << 20});
        file.api(165, ns, 100'000, correlation++);
        ns += 110'000;
        file.pop(ns - 20);
        file.pop(ns - 10);
    }
    file.end(ns);
}

/// The captures of 1 and of 8 ranks, written once.
class Captures {
  public:
    fs::path run(int ranks) {
        const fs::path run = m_folder.path() / std::to_string(ranks);
        if (!fs::exists(run)) {
            for (int rank = 0; rank < ranks; ++rank) writeRank(run, rank);
        }
        return run;
    }

  private:
    test::TemporaryFolder m_folder;
};

Captures& captures() {
    static Captures instance;
    return instance;
}

int64_t eventsIn(const fs::path& file) {
    store::TraceReader trace(file);
    int64_t events = 0;
    for (const store::Extent& extent : trace.all<store::Extent>()) events += extent.lastId - extent.firstId + 1;
    return events;
}

void collecting(benchmark::State& state) {
    const fs::path run = captures().run(static_cast<int>(state.range(0)));
    collector::CollectResult result;
    for (auto _ : state) result = collector::collect(run);
    const int64_t events = eventsIn(result.file);
    state.SetItemsProcessed(state.iterations() * events);
    state.counters["bytes_per_event"] = static_cast<double>(fs::file_size(result.file)) / static_cast<double>(events);
}

store::Database freshDatabase(const fs::path& file) {
    fs::remove(file);
    store::Database database(file.string(), store::OpenMode::create);
    database.execute(
        "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536");
    return database;
}

void insertRows(store::Database& database, int64_t rows) {
    database.execute(
        "CREATE TABLE event(a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER, g INTEGER, h INTEGER); "
        "BEGIN");
    store::Statement insert(database, "INSERT INTO event VALUES(?,?,?,?,?,?,?,?)");
    sqlite3_stmt* statement = insert.handle();
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t values[8] = {row % 8, row % 3, 1'000'000'000 + row * 1'000, 18'000, row % 100, row, 64, 256};
        for (int i = 0; i < 8; ++i) sqlite3_bind_int64(statement, i + 1, values[i]);
        sqlite3_step(statement);
        sqlite3_reset(statement);
    }
    database.execute("COMMIT");
}

void oneRowInserts(benchmark::State& state) {
    const test::TemporaryFolder folder;
    for (auto _ : state) {
        store::Database database = freshDatabase(folder.path() / "yardstick.db");
        insertRows(database, kYardstickRows);
    }
    state.SetItemsProcessed(state.iterations() * kYardstickRows);
}

void attachInsertIndex(benchmark::State& state) {
    const test::TemporaryFolder folder;
    for (int rank = 0; rank < kRanks; ++rank) {
        store::Database database = freshDatabase(folder.path() / ("rank" + std::to_string(rank) + ".db"));
        insertRows(database, kYardstickRows / kRanks);
    }
    for (auto _ : state) {
        store::Database database = freshDatabase(folder.path() / "merged.db");
        database.execute(
            "CREATE TABLE event(rank INTEGER, a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER, f INTEGER, g "
            "INTEGER, h INTEGER)");
        for (int rank = 0; rank < kRanks; ++rank) {
            const std::string name = std::to_string(rank);
            database.execute("ATTACH '" + (folder.path() / ("rank" + name + ".db")).string() +
                             "' AS r; BEGIN; INSERT INTO event SELECT " + name + ", * FROM r.event; COMMIT; DETACH r");
        }
        database.execute("CREATE INDEX event_by_time ON event(rank, c)");
    }
    state.SetItemsProcessed(state.iterations() * kYardstickRows);
}

void printTable(const bench::MedianReporter& reporter) {
    const auto rate = [&](const std::string& name) { return reporter.median(name, "items_per_second") / 1e6; };
    const double one = rate("oneRowInserts");
    const double merge = rate("attachInsertIndex");
    const double ours = rate("collecting/8");
    const double alone = rate("collecting/1");
    if (one <= 0 || merge <= 0 || ours <= 0) return;
    // Beside other work the wall clock favours whoever has more threads; processor time does not.
    const auto rateOfWork = [&](const std::string& name) {
        return rate(name) * reporter.median(name, "seconds") / reporter.median(name, "cpu_seconds");
    };
    const double size = reporter.median("collecting/8", "bytes_per_event");
    fmt::print("\n| what | ours | yardstick | ratio | goal |\n| --- | --- | --- | --- | --- |\n");
    fmt::print(
        "| capture to trace.db, M events/s (8 ranks), against one-row inserts; the file has no indexes | {:.2f} | "
        "{:.2f} | {:.2f} | >= 1.2 |\n",
        ours, one, ours / one);
    fmt::print("| the same file holds all that analyzer and GUI need | {:.2f} | {:.2f} | {:.2f} | >= 0.7 |\n", ours,
               one, ours / one);
    fmt::print("| the same by processor time of all threads | {:.2f} | {:.2f} | {:.2f} | |\n",
               rateOfWork("collecting/8"), rateOfWork("oneRowInserts"),
               rateOfWork("collecting/8") / rateOfWork("oneRowInserts"));
    fmt::print(
        "| merge of 8 ranks, sorted and findable by time, M rows/s, against ATTACH, INSERT SELECT, CREATE INDEX | "
        "{:.2f} | {:.2f} | {:.2f} | >= 1.0 |\n",
        ours, merge, ours / merge);
    fmt::print("| the same by processor time of all threads | {:.2f} | {:.2f} | {:.2f} | |\n",
               rateOfWork("collecting/8"), rateOfWork("attachInsertIndex"),
               rateOfWork("collecting/8") / rateOfWork("attachInsertIndex"));
    fmt::print("| 8 ranks against 1 rank, M events/s | {:.2f} | {:.2f} | {:.2f} | about 1: linear in ranks |\n", ours,
               alone, ours / alone);
    fmt::print("| size, bytes an event | {:.1f} | | | <= 40 |\n", size);
}

BENCHMARK(collecting)->Arg(1)->Arg(8)->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(oneRowInserts)->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(attachInsertIndex)->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rankscope

int main(int argc, char** argv) {
    rankscope::bench::MedianReporter reporter;
    rankscope::bench::runInTurns(argc, argv, 5, reporter);
    rankscope::printTable(reporter);
}

// SPDX-License-Identifier: Apache-2.0
// What an answer costs once a run is collected, beside stepping every column of every event out of SQLite on the same
// machine in the same minute. Usage: rankscope_bench_analysing RUN. A run of a few hundred thousand events tells most:
// `rankscope reference run 3d-none-sixteen -o RUN`.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>

#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "collector/store/reader.h"
#include "tests/bench/median_reporter.h"

namespace rankscope {
namespace {

std::filesystem::path g_run;

constexpr const char* kEventTables[] = {"kernel",     "memcpy",     "memset", "api_call",  "synchronization",
                                        "cuda_event", "allocation", "nvtx",   "nccl_call", "proxy_op"};

/// Steps every column of every event. Returns the number of events.
int64_t stepAll(store::TraceReader& trace) {
    int64_t rows = 0, sum = 0;
    for (const char* table : kEventTables) {
        if (!trace.hasTable(table)) continue;
        store::Statement statement(trace.database(), std::string("SELECT * FROM ") + table);
        sqlite3_stmt* handle = statement.handle();
        const int columns = sqlite3_column_count(handle);
        while (sqlite3_step(handle) == SQLITE_ROW) {
            for (int i = 0; i < columns; ++i) sum += sqlite3_column_int64(handle, i);
            ++rows;
        }
    }
    benchmark::DoNotOptimize(sum);
    return rows;
}

int64_t eventCount() {
    static const int64_t count = [] {
        store::TraceReader trace(g_run);
        return stepAll(trace);
    }();
    return count;
}

void count(benchmark::State& state) {
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * eventCount());
}

void yardstick(benchmark::State& state) {
    for (auto _ : state) {
        store::TraceReader trace(g_run);
        benchmark::DoNotOptimize(stepAll(trace));
    }
    count(state);
}

void analysing(benchmark::State& state) {
    report::AnalyzeOptions options;
    options.workers = static_cast<unsigned>(state.range(0));
    options.storeResults = false;
    for (auto _ : state) benchmark::DoNotOptimize(report::renderJson(report::analyze(g_run, options)));
    count(state);
}

BENCHMARK(yardstick)->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);
BENCHMARK(analysing)->Arg(1)->Arg(2)->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

void printTable(const bench::MedianReporter& reporter) {
    const auto rate = [&](const std::string& name) { return reporter.median(name, "items_per_second") / 1e6; };
    const auto rateOfWork = [&](const std::string& name) {
        return rate(name) * reporter.median(name, "seconds") / reporter.median(name, "cpu_seconds");
    };
    const double steps = rate("yardstick"), one = rate("analysing/1"), two = rate("analysing/2");
    if (steps <= 0 || one <= 0 || two <= 0) return;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("\n{} events\n\n| what | ours | yardstick | ratio | goal |\n| --- | --- | --- | --- | --- |\n",
               eventCount());
    fmt::print(
        "| trace.db to report, M events/s (two workers), against stepping every column out of SQLite | {:.2f} | {:.2f} "
        "| {:.2f} | >= 0.3 |\n",
        two, steps, two / steps);
    fmt::print("| the same by processor time of all threads | {:.2f} | {:.2f} | {:.2f} | |\n",
               rateOfWork("analysing/2"), rateOfWork("yardstick"), rateOfWork("analysing/2") / rateOfWork("yardstick"));
    fmt::print("| two workers against one | {:.2f} | {:.2f} | {:.2f} | |\n", two, one, two / one);
    fmt::print("| resident at most, bytes an event of all ranks | {:.1f} | | | |\n",
               static_cast<double>(usage.ru_maxrss) * 1024 / static_cast<double>(eventCount()));
}

}  // namespace
}  // namespace rankscope

int main(int argc, char** argv) {
    if (argc < 2 || argv[argc - 1][0] == '-') {
        fmt::print(stderr, "usage: {} [--benchmark_…] RUN (a run directory or its trace.db)\n", argv[0]);
        return 2;
    }
    rankscope::g_run = argv[--argc];
    rankscope::bench::MedianReporter reporter;
    rankscope::bench::runInTurns(argc, argv, 5, reporter);
    rankscope::printTable(reporter);
}

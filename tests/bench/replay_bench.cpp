// SPDX-License-Identifier: Apache-2.0
// The replay of a run: making the graph against reading the run's events out of SQLite, and tasks played per second.
// Usage: rankscope_bench_replay RUN A run of a few hundred thousand events tells most: `rankscope reference run
// 3d-none-sixteen -o RUN`.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "analyzer/replay/replay.h"
#include "collector/store/reader.h"

namespace rankscope::bench {
namespace {

std::filesystem::path g_run;

struct Recorded {
    facts::TraceFacts facts;
    std::vector<facts::RankEvents> ranks;
};

const Recorded& recorded() {
    static const Recorded instance = [] {
        Recorded read;
        store::TraceReader trace(g_run);
        read.facts = facts::readTraceFacts(trace);
        for (const facts::RankFacts& rank : read.facts.ranks)
            read.ranks.push_back(facts::readRankEvents(trace, read.facts, rank.rank));
        return read;
    }();
    return instance;
}

replay::JoinedRanks build(const Recorded& from) {
    std::vector<replay::RankTasks> ranks;
    for (const facts::RankEvents& events : from.ranks) ranks.push_back(replay::rankTasks(events, from.facts));
    return replay::joinRanks(std::move(ranks), from.facts);
}

void setRates(benchmark::State& state, size_t tasks) {
    state.counters["tasks"] = static_cast<double>(tasks);
    state.counters["tasks/s"] =
        benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsIterationInvariantRate);
}

void readEvents(benchmark::State& state) {
    const Recorded& from = recorded();
    for (auto _ : state) {
        store::TraceReader trace(g_run);
        for (const facts::RankFacts& rank : from.facts.ranks)
            benchmark::DoNotOptimize(facts::readRankEvents(trace, from.facts, rank.rank));
    }
}

void makeGraph(benchmark::State& state) {
    const Recorded& from = recorded();
    size_t tasks = 0;
    for (auto _ : state) {
        const replay::JoinedRanks joined = build(from);
        if (!joined.problem.empty()) return state.SkipWithError(joined.problem.c_str());
        tasks = joined.graph.size();
    }
    setRates(state, tasks);
}

void play(benchmark::State& state) {
    const replay::TaskGraph graph = build(recorded()).graph;
    for (auto _ : state) benchmark::DoNotOptimize(replay::simulate(graph));
    setRates(state, graph.size());
}

BENCHMARK(readEvents)->Unit(benchmark::kMillisecond);
BENCHMARK(makeGraph)->Unit(benchmark::kMillisecond);
BENCHMARK(play)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rankscope::bench

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (argc != 2) {
        fmt::print(stderr, "usage: {} RUN (a run directory or its trace.db)\n", argv[0]);
        return 2;
    }
    rankscope::bench::g_run = argv[1];
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace rankscope::bench {

/// Shows everything on the console and remembers the medians for the table at the end.
class MedianReporter : public benchmark::ConsoleReporter {
  public:
    void ReportRuns(const std::vector<Run>& runs) override {
        ConsoleReporter::ReportRuns(runs);
        for (const Run& run : runs) {
            if (run.aggregate_name != "median") continue;
            auto& counters =
                m_medians[run.run_name.function_name + (run.run_name.args.empty() ? "" : "/" + run.run_name.args)];
            for (const auto& [name, counter] : run.counters) counters[name] = counter.value;
            const double unit = benchmark::GetTimeUnitMultiplier(run.time_unit);
            counters["seconds"] = run.GetAdjustedRealTime() / unit;
            counters["cpu_seconds"] = run.GetAdjustedCPUTime() / unit;
        }
    }

    /// A counter of a benchmark ("function" or "function/args"), 0 when it did not run. "seconds" is its time,
    /// "cpu_seconds" its processor time: of all threads with MeasureProcessCPUTime().
    double median(const std::string& benchmark, const std::string& counter) const {
        const auto found = m_medians.find(benchmark);
        if (found == m_medians.end()) return 0;
        const auto value = found->second.find(counter);
        return value == found->second.end() ? 0 : value->second;
    }

  private:
    std::map<std::string, std::map<std::string, double>> m_medians;
};

/// Runs all benchmarks, `repetitions` times, in random turns, so that a noisy minute hits ours and the yardstick alike.
inline void runInTurns(int argc, char** argv, int repetitions, MedianReporter& reporter) {
    std::vector<char*> arguments(argv, argv + argc);
    std::string times = "--benchmark_repetitions=" + std::to_string(repetitions);
    std::string turns = "--benchmark_enable_random_interleaving=true";
    arguments.insert(arguments.begin() + 1, {times.data(), turns.data()});
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    benchmark::RunSpecifiedBenchmarks(&reporter);
}

}  // namespace rankscope::bench

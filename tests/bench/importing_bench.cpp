// SPDX-License-Identifier: Apache-2.0
// Kineto JSON → trace.db against simdjson that takes eight fields out of the same file, in one process. Usage: rankscope_bench_importing FILE.json
// A plain (inflated) file of some 10 MB or more tells most. Prints MB/s of both, their ratio, and the growth of resident memory per event.
#include <simdjson.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "collector/importers/import.h"

namespace {

constexpr int kRounds = 5;

double secondsOf(const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int64_t peakBytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024;
}

/// The yardstick: ph, cat, name, pid, tid, ts, dur and args.correlation of every event; returns something that depends on all of them.
double extractEightFields(const simdjson::padded_string& text) {
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document = parser.iterate(text);
    double sum = 0;
    for (auto item : document["traceEvents"]) {
        for (auto field : item.get_object()) {
            const std::string_view key = field.unescaped_key();
            simdjson::ondemand::value value = field.value();
            if (key == "ph" || key == "cat" || key == "name") {
                sum += static_cast<double>(std::string_view(value.get_string()).size());
            } else if (key == "ts" || key == "dur") {
                double number = 0;
                if (value.get_double().get(number) == simdjson::SUCCESS) sum += number;
            } else if (key == "pid" || key == "tid") {
                int64_t number = 0;
                if (value.get_int64().get(number) == simdjson::SUCCESS) sum += static_cast<double>(number);
            } else if (key == "args") {
                int64_t number = 0;
                if (value["correlation"].get_int64().get(number) == simdjson::SUCCESS) sum += static_cast<double>(number);
            }
        }
    }
    return sum;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: %s FILE.json\n", arguments[0]);
        return 2;
    }
    const std::filesystem::path file = arguments[1];
    const auto run = std::filesystem::temp_directory_path() / ("rankscope-importing-bench-" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));

    // Memory first: the yardstick holds the whole text.
    const int64_t before = peakBytes();
    rankscope::collector::ImportResult result;
    double ours = secondsOf([&] { result = rankscope::collector::importRun({file}, run); });
    const int64_t grown = peakBytes() - before;
    for (int round = 1; round < kRounds; ++round) ours = std::min(ours, secondsOf([&] { rankscope::collector::importRun({file}, run); }));
    std::filesystem::remove_all(run);

    const simdjson::padded_string text = simdjson::padded_string::load(file.string());
    double yardstick = 1e9;
    double check = 0;
    for (int round = 0; round < kRounds; ++round) yardstick = std::min(yardstick, secondsOf([&] { check += extractEightFields(text); }));

    const double megabytes = static_cast<double>(text.size()) / 1e6;
    std::printf("%-34s %10s %10s %8s  %s\n", "importing", "ours", "yardstick", "ratio", "goal");
    std::printf("%-34s %7.0f MB/s %5.0f MB/s %8.2f  >= 0.25 (simdjson, 8 fields)\n", "Kineto JSON to trace.db", megabytes / ours, megabytes / yardstick, yardstick / ours);
    std::printf("%-34s %8.0f B %10s %8s  <= 150 (peak growth per event, %llu events)\n", "memory of the import", static_cast<double>(grown) / static_cast<double>(result.events), "-", "-",
                static_cast<unsigned long long>(result.events));
    return check == 0 ? 1 : 0;
}

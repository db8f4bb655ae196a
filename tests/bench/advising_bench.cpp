// SPDX-License-Identifier: Apache-2.0
// What advice costs beside an answer: `recommend` against `analyze` of the same runs, in turns, each in a process of
// its own, so that both their time and their memory are told. Usage: rankscope_bench_advising RUN... A run that several
// settings help tells most: `rankscope reference run ddp-wrong-algo -o RUN`.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/recommend/recommend.h"
#include "analyzer/report/analyze.h"
#include "analyzer/report/renderers.h"
#include "collector/store/reader.h"

namespace rankscope::bench {
namespace {

constexpr int kTurns = 5;

struct Cost {
    double seconds = 0;
    double cpuSeconds = 0;
    double mebibytes = 0;  // resident at most
    bool answered = true;
};

double secondsOf(const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

Cost costOf(const std::function<std::string()>& question) {
    const auto begin = std::chrono::steady_clock::now();
    const pid_t child = fork();
    if (child == 0) {
        int status = 1;
        try {
            status = question().empty() ? 1 : 0;
        } catch (const std::exception& error) {
            fmt::print(stderr, "{}\n", error.what());
        }
        _exit(status);
    }
    int status = 1;
    rusage usage{};
    const bool waited = child > 0 && wait4(child, &status, 0, &usage) == child;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    return {wall.count(), secondsOf(usage.ru_utime) + secondsOf(usage.ru_stime),
            static_cast<double>(usage.ru_maxrss) / 1024, waited && status == 0};
}

double median(const std::vector<Cost>& costs, double Cost::*part) {
    std::vector<double> values;
    for (const Cost& cost : costs) values.push_back(cost.*part);
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

bool compare(const std::string& run) {
    std::vector<Cost> answers, advices;
    for (int turn = 0; turn < kTurns; ++turn) {
        answers.push_back(costOf([&] {
            report::AnalyzeOptions options;
            options.storeResults = false;
            return report::renderJson(report::analyze(run, options));
        }));
        advices.push_back(costOf([&] { return recommend::renderAdviceJson(recommend::recommend(run)); }));
        if (!answers.back().answered || !advices.back().answered) return false;
    }
    const auto row = [&](const char* what, double Cost::*part, const char* goal) {
        const double advice = median(advices, part), answer = median(answers, part);
        fmt::print("| {}: {} | {:.2f} | {:.2f} | {:.2f} | {} |\n", run, what, advice, answer, advice / answer, goal);
    };
    row("trace.db to advice, s, against trace.db to report", &Cost::seconds, "<= 5");
    row("the same by processor time of all threads", &Cost::cpuSeconds, "");
    row("resident at most, MiB", &Cost::mebibytes, "<= 1.3");
    return true;
}

}  // namespace
}  // namespace rankscope::bench

int main(int argc, char** argv) {
    if (argc < 2 || argv[1][0] == '-') {
        fmt::print(stderr, "usage: {} RUN... (run directories or their trace.db)\n", argv[0]);
        return 2;
    }
    fmt::print("| what | ours | yardstick | ratio | goal |\n| --- | --- | --- | --- | --- |\n");
    for (int i = 1; i < argc; ++i) {
        std::fflush(stdout);  // a child would print it again
        if (!rankscope::bench::compare(rankscope::store::TraceReader::databasePath(argv[i]).string())) {
            fmt::print(stderr, "{}: no answer\n", argv[i]);
            return 1;
        }
    }
}

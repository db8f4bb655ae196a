// SPDX-License-Identifier: Apache-2.0
// What recording costs the job: our figure beside its yardstick, measured in random turns, medians. The program runs
// itself as children, with and without the injector preloaded; a child measures one thing and prints one number, which
// is the time Google Benchmark is told.
#include <benchmark/benchmark.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/bench/median_reporter.h"

extern "C" int cudaStreamSynchronize(void* stream);
extern "C" int ncclAllReduce(const void*, void*, size_t count, int type, int op, void* comm, void* stream);

namespace {

namespace fs = std::filesystem;

constexpr int kTurns = 7;
constexpr int kCallsInARow = 4000;  // fits a ring even when the writer thread does not run meanwhile
constexpr int kRows = 40;
constexpr int kEventsPerSecond = 120000;
constexpr const char* kChild = "--child";

double now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

void pauseMs(long ms) {
    const timespec pause{ms / 1000, ms % 1000 * 1'000'000};
    nanosleep(&pause, nullptr);
}

/// Nanoseconds of one call: the median of many short rows, with time for the writer thread between them.
template <typename Call>
double nsPerCall(Call call, bool wait) {
    std::vector<double> rows;
    for (int row = 0; row < kRows; ++row) {
        const double begin = now();
        for (int i = 0; i < kCallsInARow; ++i) call();
        rows.push_back((now() - begin) / kCallsInARow);
        if (wait) pauseMs(20);
    }
    std::nth_element(rows.begin(), rows.begin() + kRows / 2, rows.end());
    return rows[kRows / 2];
}

/// Processor time of the injector's own thread so far.
double helperNs() {
    for (const auto& task : fs::directory_iterator("/proc/self/task")) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        double ns = 0;
        if (name == "rankscope" && std::ifstream(task.path() / "schedstat") >> ns) return ns;
    }
    return -1;
}

double helperShare() {
    cudaStreamSynchronize(nullptr);
    pauseMs(300);
    const double before = helperNs();
    const double begin = now();
    while (now() - begin < 5e9) {
        for (int i = 0; i < kEventsPerSecond / 1000; ++i) cudaStreamSynchronize(nullptr);
        pauseMs(1);
    }
    return before < 0 ? -1 : (helperNs() - before) / (now() - begin) * 100;
}

/// Nanoseconds from the start to the end of a short process, the median of a thousand.
double nsPerProcess() {
    constexpr size_t kProcesses = 1000;
    std::vector<double> times;
    for (size_t i = 0; i < kProcesses; ++i) {
        char program[] = "/bin/true";
        char* const words[] = {program, nullptr};
        pid_t process = 0;
        const double begin = now();
        if (posix_spawn(&process, program, nullptr, nullptr, words, environ) != 0) return -1;
        int status = -1;
        if (waitpid(process, &status, 0) != process || status != 0) return -1;
        times.push_back(now() - begin);
    }
    std::nth_element(times.begin(), times.begin() + kProcesses / 2, times.end());
    return times[kProcesses / 2];
}

double measure(const std::string& what, bool recording) {
    if (what == "processes") return nsPerProcess();

    const auto cuda = [] { cudaStreamSynchronize(nullptr); };
    const auto nccl = [] { ncclAllReduce(nullptr, nullptr, 1, 7, 0, nullptr, nullptr); };
    if (what == "cuda") return cuda(), nsPerCall(cuda, recording);
    if (what == "nccl") return nccl(), nsPerCall(nccl, recording);
#if defined(__x86_64__)
    const auto readTwice = [] {
        for (int i = 0; i < 2; ++i) {
            const unsigned long long ticks = __builtin_ia32_rdtsc();
            asm volatile("" : : "r"(ticks));
        }
    };
    if (what == "timer") return nsPerCall(readTwice, false);
#endif
    if (what == "helper") return helperShare();
    return -1;
}

struct Setting {
    bool preload;
    bool recording;
};

struct Result {
    double figure;
    double bytes;  ///< of the capture
};

Result runChild(const char* self, const char* what, Setting setting) {
    char folder[] = "/tmp/rankscope-bench-XXXXXX";
    if (mkdtemp(folder) == nullptr) return {-1, 0};
    int pipeEnds[2];
    if (pipe(pipeEnds) != 0) return {-1, 0};
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipeEnds[1], STDOUT_FILENO);
        close(pipeEnds[0]);
        close(pipeEnds[1]);
        if (setting.preload) {
            setenv("LD_PRELOAD", RANKSCOPE_BENCH_INJECTOR, 1);
            setenv("RANKSCOPE_DIR", folder, 1);
            setenv("RANKSCOPE_TRACE", "nccl,api", 1);
            if (!setting.recording) setenv("RANKSCOPE_CAPTURE_RANGE", "cudaProfilerApi", 1);
        }
        execl(self, self, kChild, what, setting.recording ? "recording" : "not", static_cast<char*>(nullptr));
        _exit(127);
    }
    close(pipeEnds[1]);
    char text[64] = {};
    [[maybe_unused]] const ssize_t got = read(pipeEnds[0], text, sizeof text - 1);
    close(pipeEnds[0]);
    waitpid(child, nullptr, 0);
    double bytes = 0;
    for (const auto& file : fs::directory_iterator(folder)) bytes += static_cast<double>(file.file_size());
    fs::remove_all(folder);
    return {std::atof(text), bytes};
}

/// One child an iteration. Its figure is nanoseconds of a call, or for `share` per cent of a core.
void inChild(benchmark::State& state, const char* what, Setting setting) {
    static const std::string self = fs::read_symlink("/proc/self/exe");
    Result result{};
    for (auto _ : state) {
        result = runChild(self.c_str(), what, setting);
        state.SetIterationTime(std::max(result.figure, 0.0) * 1e-9);
    }
    if (result.figure < 0) state.SkipWithError("cannot be measured here");
    state.counters["figure"] = result.figure;
    state.counters["bytes_per_event"] = result.bytes / (kRows * kCallsInARow);
}

constexpr Setting kAlone{false, false}, kWaiting{true, false}, kRecording{true, true};
#define RANKSCOPE_IN_CHILD(name, what, setting) \
    BENCHMARK_CAPTURE(inChild, name, what, setting)->UseManualTime()->Iterations(1)->Unit(benchmark::kNanosecond)
RANKSCOPE_IN_CHILD(call, "cuda", kAlone);
RANKSCOPE_IN_CHILD(call_while_not_recording, "cuda", kWaiting);
RANKSCOPE_IN_CHILD(call_recorded, "cuda", kRecording);
RANKSCOPE_IN_CHILD(two_timer_reads, "timer", kAlone);
RANKSCOPE_IN_CHILD(nccl_call, "nccl", kAlone);
RANKSCOPE_IN_CHILD(nccl_call_recorded, "nccl", kRecording);
RANKSCOPE_IN_CHILD(helper_thread, "helper", kRecording);
RANKSCOPE_IN_CHILD(short_process, "processes", kAlone);
RANKSCOPE_IN_CHILD(short_process_of_a_job, "processes", kWaiting);

void print(const char* what, const char* unit, double ours, double yardstick, const char* goal, bool holds) {
    if (yardstick > 0)
        std::printf("| %-52s | %8.2f %-7s | %8.2f | %6.2f | %-34s | %s |\n", what, ours, unit, yardstick,
                    ours / yardstick, goal, holds ? "holds" : "misses");
    else
        std::printf("| %-52s | %8.2f %-7s | %8s | %6s | %-34s | %s |\n", what, ours, unit, "", "", goal,
                    holds ? "holds" : "misses");
}

void printTable(const rankscope::bench::MedianReporter& reporter) {
    const auto figure = [&](const std::string& name) { return reporter.median("inChild/" + name, "figure"); };
    const double direct = figure("call");
    const double waiting = figure("call_while_not_recording");
    const double timer = figure("two_timer_reads");
    const double call = figure("call_recorded") - direct;
    const double ncclCall = figure("nccl_call_recorded") - figure("nccl_call");
    const double share = figure("helper_thread");
    const double bytes = reporter.median("inChild/call_recorded", "bytes_per_event");
    const double process = figure("short_process") / 1000;
    const double ofJob = figure("short_process_of_a_job") / 1000 - process;
    if (direct <= 0 || timer <= 0) return;
    std::printf("\n| what | ours | yardstick | ratio | goal | |\n| --- | --- | --- | --- | --- | --- |\n");
    print("hooked call while not recording / direct PLT call", "ns", waiting, direct, "<= 1.6x",
          waiting <= 1.6 * direct);
    print("recording a call / two timer reads", "ns", call, timer, "<= 1.5x + 5 ns", call <= 1.5 * timer + 5);
    print("recording an NCCL call, arguments decoded", "ns", ncclCall, timer, "<= 60 ns", ncclCall <= 60);
    print("our share of a launch of 5 us", "%", call / 5000 * 100, 0, "<= 1 %", call <= 50);
    print("helper thread at 120,000 events/s", "% core", share, 0, "<= 0.5 %", share >= 0 && share <= 0.5);
    print("a short process of a job, beyond bare / bare", "us", ofJob, process, "<= 100 us", ofJob <= 100);
    print("capture file", "B/event", bytes, 0, "<= 32 B and the file's head", bytes <= 32.5);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], kChild) == 0) {
        std::printf("%.3f\n", measure(argv[2], std::strcmp(argv[3], "recording") == 0));
        return 0;
    }
    rankscope::bench::MedianReporter reporter;
    rankscope::bench::runInTurns(argc, argv, kTurns, reporter);
    printTable(reporter);
}

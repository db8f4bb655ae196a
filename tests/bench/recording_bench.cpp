// SPDX-License-Identifier: Apache-2.0
// What recording costs the job: our figure beside its yardstick, measured in turns (A B A B…), medians. The program runs itself as children,
// with and without the injector preloaded; a child measures one thing and prints one number.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" int cudaStreamSynchronize(void* stream);
extern "C" int ncclAllReduce(const void*, void*, size_t count, int type, int op, void* comm, void* stream);

namespace {

namespace fs = std::filesystem;

constexpr int kTurns = 7;
constexpr int kCallsInARow = 4000;  // fits a ring even when the writer thread does not run meanwhile
constexpr int kRows = 40;
constexpr int kEventsPerSecond = 120000;

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

double measure(const std::string& what, bool recording) {
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
        execl(self, self, what, setting.recording ? "recording" : "not", static_cast<char*>(nullptr));
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

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void print(const char* what, const char* unit, double ours, double yardstick, const char* goal, bool holds) {
    if (yardstick > 0) std::printf("| %-52s | %8.2f %-7s | %8.2f | %6.2f | %-34s | %s |\n", what, ours, unit, yardstick, ours / yardstick, goal, holds ? "holds" : "misses");
    else std::printf("| %-52s | %8.2f %-7s | %8s | %6s | %-34s | %s |\n", what, ours, unit, "", "", goal, holds ? "holds" : "misses");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3) {
        std::printf("%.3f\n", measure(argv[1], std::strcmp(argv[2], "recording") == 0));
        return 0;
    }
    const std::string self = fs::read_symlink("/proc/self/exe");
    std::vector<double> direct, waiting, recorded, timer, ncclDirect, ncclRecorded, share, bytes;
    for (int turn = 0; turn < kTurns; ++turn) {
        direct.push_back(runChild(self.c_str(), "cuda", {false, false}).figure);
        waiting.push_back(runChild(self.c_str(), "cuda", {true, false}).figure);
        timer.push_back(runChild(self.c_str(), "timer", {false, false}).figure);
        const Result full = runChild(self.c_str(), "cuda", {true, true});
        recorded.push_back(full.figure);
        bytes.push_back(full.bytes / (kRows * kCallsInARow));
        ncclDirect.push_back(runChild(self.c_str(), "nccl", {false, false}).figure);
        ncclRecorded.push_back(runChild(self.c_str(), "nccl", {true, true}).figure);
        if (turn < 3) share.push_back(runChild(self.c_str(), "helper", {true, true}).figure);
    }
    const double call = median(recorded) - median(direct);
    const double ncclCall = median(ncclRecorded) - median(ncclDirect);
    const double limit = 1.5 * median(timer) + 5;
    std::printf("| what | ours | yardstick | ratio | goal | |\n| --- | --- | --- | --- | --- | --- |\n");
    print("hooked call while not recording / direct PLT call", "ns", median(waiting), median(direct), "<= 1.6x", median(waiting) <= 1.6 * median(direct));
    print("recording a call / two timer reads", "ns", call, median(timer), "<= 1.5x + 5 ns", call <= limit);
    print("recording an NCCL call, arguments decoded", "ns", ncclCall, median(timer), "<= 60 ns", ncclCall <= 60);
    print("our share of a launch of 5 us", "%", call / 5000 * 100, 0, "<= 1 %", call <= 50);
    print("helper thread at 120,000 events/s", "% core", median(share), 0, "<= 0.5 %", median(share) >= 0 && median(share) <= 0.5);
    print("capture file", "B/event", median(bytes), 0, "<= 32 B and the file's head", median(bytes) <= 32.5);
    return 0;
}

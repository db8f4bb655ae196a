// SPDX-License-Identifier: Apache-2.0
// Kineto JSON to trace.db against simdjson that takes eight fields out of the same file, in one process. Usage:
// rankscope_bench_importing [FILE.json] Without a file it makes one of 250,000 events; of files, a plain one of some 10
// MB or more tells most.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <simdjson.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "collector/importers/import.h"
#include "tests/bench/median_reporter.h"
#include "tests/unit/collector/capture_file.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr int kEvents = 250'000;

/// The traces of this run: the text, and the same compressed.
struct Input {
    test::TemporaryFolder folder;
    fs::path plain;
    fs::path compressed;
    size_t bytes = 0;
};

Input& input() {
    static Input instance;
    return instance;
}

/// Operators, their launches and kernels, as torch.profiler writes them.
void writeTrace(const fs::path& file) {
    std::ofstream out(file);
    out << R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 84929347584, "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1}, "traceEvents": [
)";
    double ts = 5'000'000'000.0;
    for (int i = 0; i < kEvents / 3; ++i, ts += 21.125) {
        out << fmt::format(
            R"({{"ph": "X", "cat": "cpu_op", "name": "aten::addmm_{}", "pid": 4711, "tid": 4711, "ts": {:.3f}, "dur": 18.250, "args": {{"External id": {}, "Record function id": 0, "Concrete Inputs": ["", ""], "Input type": ["float", "float"], "Input Dims": [[4096, 1024], [1024, 1024]]}}}},
{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711, "ts": {:.3f}, "dur": 4.125, "args": {{"External id": {}, "cbid": 211, "correlation": {}}}}},
{{"ph": "X", "cat": "kernel", "name": "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_{}x128_32x5_nn_align8>", "pid": 0, "tid": 7, "ts": {:.3f}, "dur": 15.500, "args": {{"External id": {}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {}, "registers per thread": 230, "shared memory": 81920, "blocks per SM": 0.969697, "grid": [32, 4, 1], "block": [128, 1, 1], "est. achieved occupancy %": 6}}}},
)",
            i % 60, ts, i, ts + 6, i, i, i % 8 * 32, ts + 12, i, i);
    }
    out << R"({"ph": "M", "name": "process_name", "pid": 4711, "tid": 0, "ts": 5000000000.000, "args": {"name": "python"}}
]}
)";
}

std::string textOf(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void prepareInput(const char* given) {
    Input& in = input();
    in.plain = given ? fs::path(given) : in.folder.path() / "rank0.json";
    if (!given) writeTrace(in.plain);
    in.bytes = fs::file_size(in.plain);
    in.compressed = in.folder.path() / "rank0.json.gz";
    const std::string text = textOf(in.plain);
    gzFile file = gzopen(in.compressed.c_str(), "wb6");
    for (size_t at = 0; at < text.size();) {
        const int wrote =
            gzwrite(file, text.data() + at, static_cast<unsigned>(std::min<size_t>(text.size() - at, 1 << 20)));
        if (wrote <= 0) break;
        at += static_cast<size_t>(wrote);
    }
    gzclose(file);
}

collector::ImportResult importOne(const fs::path& file) {
    const fs::path run = input().folder.path() / "run";
    fs::remove_all(run);
    return collector::importRun({file}, run);
}

void importing(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(importOne(state.range(0) ? input().compressed : input().plain));
    state.SetBytesProcessed(static_cast<int64_t>(input().bytes) * state.iterations());
}

/// The yardstick: ph, cat, name, pid, tid, ts, dur and args.correlation of every event; returns something that depends
/// on all of them.
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
                if (value["correlation"].get_int64().get(number) == simdjson::SUCCESS)
                    sum += static_cast<double>(number);
            }
        }
    }
    return sum;
}

void extracting(benchmark::State& state) {
    const simdjson::padded_string text = simdjson::padded_string::load(input().plain.string());
    for (auto _ : state) benchmark::DoNotOptimize(extractEightFields(text));
    state.SetBytesProcessed(static_cast<int64_t>(input().bytes) * state.iterations());
}

BENCHMARK(importing)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(extracting)->UseRealTime()->Unit(benchmark::kMillisecond);

int64_t peakBytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024;
}

/// Growth of resident memory per event of one import, in a process that did nothing else; -1 unknown.
double bytesPerEvent() {
    int ends[2];
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        const int64_t before = peakBytes();
        const auto events = static_cast<double>(importOne(input().plain).events);
        const double grown = static_cast<double>(peakBytes() - before) / events;
        const bool told = write(ends[1], &grown, sizeof grown) == sizeof grown;
        _exit(told ? 0 : 1);
    }
    close(ends[1]);
    double grown = -1;
    if (read(ends[0], &grown, sizeof grown) != sizeof grown) grown = -1;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return grown;
}

void printTable(const bench::MedianReporter& reporter, double memory) {
    const auto rate = [&](const std::string& name) { return reporter.median(name, "bytes_per_second") / 1e6; };
    const double yardstick = rate("extracting");
    if (yardstick <= 0) return;
    fmt::print("\n| what | ours | yardstick | ratio | goal |\n| --- | --- | --- | --- | --- |\n");
    fmt::print(
        "| Kineto JSON to trace.db, MB/s, against simdjson that takes 8 fields out | {:.0f} | {:.0f} | {:.2f} | >= "
        "0.25 |\n",
        rate("importing/0"), yardstick, rate("importing/0") / yardstick);
    fmt::print("| the same from .json.gz, MB/s of text | {:.0f} | {:.0f} | {:.2f} | >= 0.20 |\n", rate("importing/1"),
               yardstick, rate("importing/1") / yardstick);
    fmt::print("| peak memory of an import, bytes an event | {:.0f} | | | <= 150 |\n", memory);
}

}  // namespace
}  // namespace rankscope

int main(int argc, char** argv) {
    const bool given = argc > 1 && argv[1][0] != '-';
    rankscope::prepareInput(given ? argv[1] : nullptr);
    const double memory = rankscope::bytesPerEvent();
    if (given) argv[1] = argv[0];
    rankscope::bench::MedianReporter reporter;
    rankscope::bench::runInTurns(given ? argc - 1 : argc, given ? argv + 1 : argv, 5, reporter);
    rankscope::printTable(reporter, memory);
}

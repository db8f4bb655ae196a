// SPDX-License-Identifier: Apache-2.0
// rankscope-workload SCENARIO.json: one rank of a reference job. Exit status: 0 ok, 1 wrong results, 2 usage or
// scenario, 3 device or job.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "reference/workloads/check.h"
#include "reference/workloads/identity.h"
#include "reference/workloads/rendezvous.h"
#include "reference/workloads/scenario.h"
#include "reference/workloads/virtual_gpu.h"
#include "reference/workloads/workload.h"

namespace {

using namespace rankscope::reference;

enum ExitStatus { kOk = 0, kWrongResult = 1, kUsage = 2, kDeviceFailure = 3 };

constexpr const char* kHelp =
    "Usage: rankscope-workload [options] SCENARIO.json\n"
    "Runs one rank of a reference training job; start one per rank by torchrun, mpirun or srun.\n\n"
    "  --rank N --world-size N  this rank, where no launcher tells it\n"
    "  --check                  only read the scenario and print what it needs, as JSON\n"
    "  --fixed                  only print the scenario with its 'fixed' overrides merged\n"
    "  --help                   this text\n";

enum class Mode { run, check, fixed };

struct Arguments {
    Mode mode = Mode::run;
    IdentityOptions identity;
    std::string scenario;
};

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

int readNumber(const char* option, const char* text) {
    char* end = nullptr;
    const long value = text ? strtol(text, &end, 10) : -1;
    if (!text || *end || end == text || value < 0 || value > 10000000)
        throw UsageError(std::string(option) + " needs a number");
    return static_cast<int>(value);
}

Arguments readArguments(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const char* next = i + 1 < argc ? argv[i + 1] : nullptr;
        if (argument == "--check")
            arguments.mode = Mode::check;
        else if (argument == "--fixed")
            arguments.mode = Mode::fixed;
        else if (argument == "--rank")
            arguments.identity.rank = readNumber("--rank", next), ++i;
        else if (argument == "--world-size")
            arguments.identity.worldSize = readNumber("--world-size", next), ++i;
        else if (argument.rfind("-", 0) == 0)
            throw UsageError("unknown option " + argument);
        else if (!arguments.scenario.empty())
            throw UsageError("more than one scenario");
        else
            arguments.scenario = argument;
    }
    if (arguments.scenario.empty()) throw UsageError("no scenario given");
    return arguments;
}

std::string readText(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw ScenarioError(path + ": cannot be read");
    return text.str();
}

/// A virtual GPU reads its cluster and the faults of its devices, and whoever records the host of a rank, from the
/// environment at the first CUDA call. What the launcher did not set is said here, so that any launcher runs the job
/// that the scenario describes.
void describeVirtualCluster(const Scenario& scenario, const std::string& path, int rank) {
    if (!VirtualGpu().present()) return;
    setenv("RANKSCOPE_SCENARIO", std::filesystem::absolute(path).c_str(), 0);
    if (scenario.cluster.nodes > 1)
        setenv("RANKSCOPE_HOST", ("node" + std::to_string(rank / scenario.cluster.ranksPerNode)).c_str(), 0);
}

/// As if they had been in the job's environment from the start; what a user sets wins, so that a recommendation can be
/// tried.
void setNcclVariables(const Faults& faults, bool overNodes) {
    // How a job comes to use sockets beside InfiniBand, or the host's memory beside NVLink: the virtual GPUs ask the
    // same variables (reference/vgpu/engine/cluster.cpp).
    const bool slowWay =
        std::find(faults.virtualOnly.begin(), faults.virtualOnly.end(), "under_used_link") != faults.virtualOnly.end();
    if (slowWay) setenv(overNodes ? "NCCL_NET" : "NCCL_P2P_DISABLE", overNodes ? "Socket" : "1", 0);
    if (!faults.wrongAlgo) return;
    if (!faults.wrongAlgo->algo.empty()) setenv("NCCL_ALGO", faults.wrongAlgo->algo.c_str(), 0);
    if (!faults.wrongAlgo->proto.empty()) setenv("NCCL_PROTO", faults.wrongAlgo->proto.c_str(), 0);
}

int runRank(const Scenario& scenario, const Identity& identity) {
    if (scenario.kind == Kind::framework)
        throw ScenarioError("'" + scenario.name + "' is a job of a framework: `rankscope reference run` starts it");
    Worker worker(scenario, identity);
    switch (scenario.kind) {
        case Kind::framework:
            break;
        case Kind::ddp:
        case Kind::zero1:
        case Kind::zero2:
            return runDdp(worker);
        case Kind::fsdp:
        case Kind::hsdp:
            return runFsdp(worker);
        case Kind::tp:
        case Kind::tpSp:
        case Kind::pp:
        case Kind::ep:
        case Kind::threeD:
            return runModelParallel(worker);
    }
    return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(kHelp, stdout);
        return kOk;
    }
    Identity identity;
    try {
        const Arguments arguments = readArguments(argc, argv);
        const std::string text = readText(arguments.scenario);
        if (arguments.mode == Mode::fixed) {
            fputs(fixedScenarioText(text, arguments.scenario).c_str(), stdout);
            return kOk;
        }
        identity = readIdentity(arguments.identity);
        const Scenario scenario = parseScenario(text, arguments.scenario);
        if (arguments.mode == Mode::check) {
            fputs(summaryText(scenario).c_str(), stdout);
            return kOk;
        }
        if (identity.worldSize != scenario.worldSize())
            throw ScenarioError(arguments.scenario + ": is for " + std::to_string(scenario.worldSize()) +
                                " ranks, but " + std::to_string(identity.worldSize) +
                                (identity.worldSize == 1 ? " was" : " were") + " started");
        describeVirtualCluster(scenario, arguments.scenario, identity.rank);
        setNcclVariables(scenario.faults, scenario.cluster.nodes > 1);
        return runRank(scenario, identity);
    } catch (const UsageError& error) {
        fprintf(stderr, "rankscope-workload: %s\n%s", error.what(), kHelp);
        return kUsage;
    } catch (const ScenarioError& error) {
        // Every rank reads the same file: one of them says so.
        if (identity.rank == 0) fprintf(stderr, "rankscope-workload: %s\n", error.what());
        return kUsage;
    } catch (const IdentityError& error) {
        fprintf(stderr, "rankscope-workload: %s\n", error.what());
        return kUsage;
    } catch (const std::exception& error) {
        fprintf(stderr, "rankscope-workload: rank %d: %s\n", identity.rank, error.what());
        return kDeviceFailure;
    }
}

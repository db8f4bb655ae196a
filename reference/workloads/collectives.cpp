// SPDX-License-Identifier: Apache-2.0
// rankscope-collectives PLAN: one rank of a job that does nothing but the collectives of a plan, for `rankscope tune
// --sweep`. Start one per rank by any launcher. The plan is a text file: "groups" with each rank's group (-1: takes no
// part) opens new communicators, and a line like "allreduce 1048576 20" has them all run that collective at once, so
// many bytes (the whole buffer) so many times. Exit status: 0 ok, 2 usage or plan, 3 device or job.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "reference/workloads/check.h"
#include "reference/workloads/identity.h"
#include "reference/workloads/rendezvous.h"

namespace {

using namespace rankscope::reference;

constexpr std::chrono::seconds kRendezvousTimeout{120};
constexpr size_t kElementBytes = 4;

struct PlanError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Line {
    std::string op;           // "groups", or a collective
    std::vector<int> groups;  // per rank
    size_t bytes = 0;
    int times = 0;
};

std::vector<Line> readPlan(const std::string& path, int worldSize) {
    std::ifstream file(path);
    if (!file) throw PlanError(path + ": cannot be read");
    std::vector<Line> plan;
    std::string text;
    for (int number = 1; std::getline(file, text); ++number) {
        std::istringstream words(text);
        Line line;
        if (!(words >> line.op) || line.op[0] == '#') continue;
        const std::string where = path + ", line " + std::to_string(number) + ": ";
        if (line.op == "groups") {
            for (int group; words >> group;) line.groups.push_back(group);
            if (static_cast<int>(line.groups.size()) != worldSize)
                throw PlanError(where + "groups of " + std::to_string(line.groups.size()) + " ranks, but " +
                                std::to_string(worldSize) + " were started");
        } else {
            if (line.op != "allreduce" && line.op != "allgather" && line.op != "reducescatter" &&
                line.op != "broadcast" && line.op != "reduce")
                throw PlanError(where + "unknown collective " + line.op);
            if (plan.empty()) throw PlanError(where + "no groups before it");
            if (!(words >> line.bytes >> line.times) || line.bytes == 0 || line.times < 1)
                throw PlanError(where + "write COLLECTIVE BYTES TIMES");
        }
        plan.push_back(line);
    }
    return plan;
}

class Rank {
  public:
    explicit Rank(const Identity& identity) : m_identity(identity) {
        int devices = 0;
        require(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
        if (devices < 1) throw DeviceError("there is no GPU");
        require(cudaSetDevice(identity.localRank % devices), "cudaSetDevice");
        Rendezvous rendezvous(identity);
        ncclUniqueId id{};
        if (identity.rank == 0) require(ncclGetUniqueId(&id), "ncclGetUniqueId");
        id = rendezvous.exchange(identity.rank == 0 ? &id : nullptr, kRendezvousTimeout);
        require(ncclCommInitRank(&m_world, identity.worldSize, id, identity.rank), "ncclCommInitRank");
        require(cudaStreamCreateWithFlags(&m_stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    }

    void run(const std::vector<Line>& plan) {
        allocate(plan);
        for (const Line& line : plan) {
            if (line.op == "groups")
                openGroups(line.groups);
            else if (m_group)
                runCollective(line);
        }
        closeGroup();
        require(ncclCommDestroy(m_world), "ncclCommDestroy");
    }

  private:
    void allocate(const std::vector<Line>& plan) {
        size_t bytes = kElementBytes;
        for (const Line& line : plan) bytes = std::max(bytes, line.bytes);
        // The whole buffer on both sides is enough for every collective; a share is rounded up to whole elements.
        bytes += kElementBytes * static_cast<size_t>(m_identity.worldSize);
        require(cudaMalloc(&m_send, bytes), "cudaMalloc");
        require(cudaMalloc(&m_receive, bytes), "cudaMalloc");
        require(cudaMemsetAsync(m_send, 0, bytes, m_stream), "cudaMemsetAsync");
        require(cudaStreamSynchronize(m_stream), "cudaStreamSynchronize");
    }

    void openGroups(const std::vector<int>& groups) {
        closeGroup();
        const int own = groups[static_cast<size_t>(m_identity.rank)];
        require(ncclCommSplit(m_world, own < 0 ? NCCL_SPLIT_NOCOLOR : own, m_identity.rank, &m_group, nullptr),
                "ncclCommSplit");
        m_groupSize = static_cast<size_t>(std::count(groups.begin(), groups.end(), own));
    }

    void closeGroup() {
        if (m_group) require(ncclCommDestroy(m_group), "ncclCommDestroy");
        m_group = nullptr;
    }

    void runCollective(const Line& line) {
        const size_t whole = std::max<size_t>(1, line.bytes / kElementBytes),
                     share = std::max<size_t>(1, whole / m_groupSize);
        for (int i = 0; i < line.times; ++i) {
            if (line.op == "allreduce")
                require(ncclAllReduce(m_send, m_receive, whole, ncclFloat, ncclSum, m_group, m_stream),
                        "ncclAllReduce");
            else if (line.op == "allgather")
                require(ncclAllGather(m_send, m_receive, share, ncclFloat, m_group, m_stream), "ncclAllGather");
            else if (line.op == "reducescatter")
                require(ncclReduceScatter(m_send, m_receive, share, ncclFloat, ncclSum, m_group, m_stream),
                        "ncclReduceScatter");
            else if (line.op == "broadcast")
                require(ncclBroadcast(m_send, m_receive, whole, ncclFloat, 0, m_group, m_stream), "ncclBroadcast");
            else
                require(ncclReduce(m_send, m_receive, whole, ncclFloat, ncclSum, 0, m_group, m_stream), "ncclReduce");
        }
        require(cudaStreamSynchronize(m_stream), "cudaStreamSynchronize");
    }

    const Identity& m_identity;
    ncclComm_t m_world = nullptr, m_group = nullptr;
    size_t m_groupSize = 1;
    cudaStream_t m_stream = nullptr;
    void *m_send = nullptr, *m_receive = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        fputs(
            "Usage: rankscope-collectives PLAN\nOne rank of `rankscope tune --sweep`; start one per rank by torchrun, "
            "mpirun or srun.\n",
            stderr);
        return 2;
    }
    Identity identity;
    try {
        identity = readIdentity({});
        const std::vector<Line> plan = readPlan(argv[1], identity.worldSize);
        Rank(identity).run(plan);
        return 0;
    } catch (const PlanError& error) {
        if (identity.rank == 0) fprintf(stderr, "rankscope-collectives: %s\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        fprintf(stderr, "rankscope-collectives: rank %d: %s\n", identity.rank, error.what());
        return 3;
    }
}

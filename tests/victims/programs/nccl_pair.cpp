// SPDX-License-Identifier: Apache-2.0
// Two ranks that reduce a few buffers and print what they got. With an argument they use the entry points of NCCL 2.31
// with settings for each call.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

/// An older nccl.h does not declare it, and an older NCCL does not have it.
extern "C" [[gnu::weak]] ncclResult_t ncclAllReduceConfig(const void* send, void* recv, size_t count,
                                                          ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                                          cudaStream_t stream, const void* config);

namespace {

/// ncclCollConfig_t of 2.31 (nccl.h), with a tag for profilers.
struct Settings {
    size_t size = sizeof(Settings);
    unsigned int magic = 0xcafebeef, version = 23100;
    const void* extensions = nullptr;
    int minCtas = INT_MIN, maxCtas = INT_MIN, nvlsCtas = INT_MIN, clusterSize = INT_MIN;
    const char* algorithms = nullptr;
    int mustUse = 1, ctaPolicy = INT_MIN;
    uint64_t userTag = 77;
};

bool g_withSettings = false;

void allReduce(void* memory, size_t count, ncclComm_t comm) {
    const Settings settings;
    if (g_withSettings)
        ncclAllReduceConfig(memory, memory, count, ncclFloat, ncclSum, comm, nullptr, &settings);
    else
        ncclAllReduce(memory, memory, count, ncclFloat, ncclSum, comm, nullptr);
}

int work(int rank, const ncclUniqueId& id) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", "2", 1);
    cudaSetDevice(rank);
    ncclComm_t comm = nullptr;
    std::printf("rank %d: init %d\n", rank, static_cast<int>(ncclCommInitRank(&comm, 2, id, rank)));
    constexpr size_t kCount = 256;
    float values[kCount];
    for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(rank + 1);
    void* memory = nullptr;
    cudaMalloc(&memory, sizeof values);
    cudaMemcpy(memory, values, sizeof values, cudaMemcpyHostToDevice);
    for (int i = 0; i < 10; ++i) allReduce(memory, kCount, comm);
    cudaStreamSynchronize(nullptr);
    cudaMemcpy(values, memory, sizeof values, cudaMemcpyDeviceToHost);
    std::printf("rank %d: value %g, destroy %d\n", rank, values[kCount - 1], static_cast<int>(ncclCommDestroy(comm)));
    return 0;
}

}  // namespace

int main(int argc, char**) {
    g_withSettings = argc > 1;
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    // One after the other writes its lines at exit: their order is the program's, not the machine's.
    int pipes[2];
    [[maybe_unused]] const int made = pipe(pipes);
    const pid_t second = fork();
    if (second == 0) {
        close(pipes[1]);
        const int status = work(1, id);
        char end;
        [[maybe_unused]] const ssize_t got = read(pipes[0], &end, 1);
        std::exit(status);
    }
    close(pipes[0]);
    work(0, id);
    std::fflush(stdout);
    close(pipes[1]);
    waitpid(second, nullptr, 0);
}

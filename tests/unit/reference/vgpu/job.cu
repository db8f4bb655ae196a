// SPDX-License-Identifier: Apache-2.0
// A small multi-process CUDA and NCCL program, one process per rank, forked here. It is an ordinary program: nothing in
// it knows of virtual GPUs. Usage: vgpu_job MODE RANKS [STEPS]. Exit code 0 if every rank saw the data it should.
//   train    compute on one stream, all-reduce on another, joined by events; every rank checks the sums
//   p2p      a ring of grouped send and receive, then an all-to-all
//   jitter   train, with random pauses of the host in real time
//   death    rank 1 is killed before its collective; the others abort and report a remote error
//   leave    rank 1 ends without a word when all is done; that is an error of what the others begin then
//   early    rank 1 destroys its communicator and ends while the others still ask theirs
//   threads  a second thread does the waiting while the first sleeps in pthread_join
//   memory   one rank allocates, frees and copies while a kernel of 2 ms runs
//   queue    3000 kernels of 20 us in one stream, more than a launch queue holds
//   struct   a kernel with a large struct for a parameter, run by its host twin
//   graph    a step captured from two streams, launched three times; what a capture forbids fails
//   devices  one process drives all ranks' GPUs with ncclCommInitAll
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <nccl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                              \
    do {                                                                         \
        int status = static_cast<int>(call);                                     \
        if (status != 0) {                                                       \
            std::fprintf(stderr, "line %d: %s = %d\n", __LINE__, #call, status); \
            std::exit(2);                                                        \
        }                                                                        \
    } while (0)

struct Wide {
    double head[40];  // 320 bytes, more than fits in a cache line
    int tail;
};
__global__ void take(Wide wide, int* out) {
    *out = wide.tail + static_cast<int>(wide.head[39]);
}
void takeOnHost(void** args) {
    **static_cast<int**>(args[1]) =
        static_cast<Wide*>(args[0])->tail + static_cast<int>(static_cast<Wide*>(args[0])->head[39]);
}

__global__ void compute(float* data) {
    data[threadIdx.x] *= 1;
}

namespace {

constexpr int kElements = 1 << 12;  // 16 KiB: larger than what moves by default is not needed here

bool g_jitter = false;

void pauseSometimes(int rank) {
    if (!g_jitter || std::rand() % 4 != 0) return;
    // Not a sleep, which would take its length of virtual time: the system merely lets the thread stand.
    const timespec pause{0, std::rand() % 8000 * (1 + rank % 3) * 1000L};
    syscall(SYS_nanosleep, &pause, nullptr);
}

struct Rank {
    int rank, size;
    ncclComm_t comm = nullptr;
    cudaStream_t work = nullptr, transfer = nullptr;
    float* data = nullptr;

    void open(const ncclUniqueId& id) {
        CHECK(cudaSetDevice(0));
        CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
        CHECK(cudaStreamCreateWithFlags(&transfer, cudaStreamNonBlocking));
        CHECK(cudaMalloc(reinterpret_cast<void**>(&data), kElements * sizeof(float)));
        CHECK(ncclCommInitRank(&comm, size, id, rank));
    }
    void close() {
        CHECK(ncclCommDestroy(comm));
        CHECK(cudaFree(data));
        CHECK(cudaDeviceSynchronize());
    }
    int compare(const float* device, float expected) {
        std::vector<float> host(kElements, -1);
        CHECK(cudaMemcpyAsync(host.data(), device, kElements * sizeof(float), cudaMemcpyDeviceToHost, transfer));
        CHECK(cudaStreamSynchronize(transfer));
        int wrong = (host.front() != expected) + (host[500] != expected) + (host.back() != expected);
        if (wrong)
            std::fprintf(stderr, "rank %d: got %g .. %g, expected %g\n", rank, host.front(), host.back(), expected);
        return wrong;
    }
};

int train(Rank& rank, int steps) {
    int wrong = 0;
    std::vector<float> host(kElements, static_cast<float>(rank.rank + 1));
    cudaEvent_t ready;
    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    for (int step = 0; step < steps; step++) {
        CHECK(cudaMemcpyAsync(rank.data, host.data(), kElements * sizeof(float), cudaMemcpyHostToDevice, rank.work));
        for (int kernel = 0; kernel < 10; kernel++) {
            compute<<<100 + 50 * (rank.rank % 3), 256, 0, rank.work>>>(rank.data);
            pauseSometimes(rank.rank);
        }
        CHECK(cudaEventRecord(ready, rank.work));
        CHECK(cudaStreamWaitEvent(rank.transfer, ready, 0));
        CHECK(ncclAllReduce(rank.data, rank.data, kElements, ncclFloat, ncclSum, rank.comm, rank.transfer));
        compute<<<400, 256, 0, rank.work>>>(rank.data);
        pauseSometimes(rank.rank);
        wrong += rank.compare(rank.data, static_cast<float>(rank.size * (rank.size + 1) / 2));
        CHECK(cudaStreamSynchronize(rank.work));
    }
    return wrong;
}

int messages(Rank& rank) {
    float* received;
    CHECK(cudaMalloc(reinterpret_cast<void**>(&received), kElements * sizeof(float)));
    std::vector<float> host(kElements, static_cast<float>(rank.rank));
    CHECK(cudaMemcpy(rank.data, host.data(), kElements * sizeof(float), cudaMemcpyHostToDevice));
    int next = (rank.rank + 1) % rank.size, previous = (rank.rank + rank.size - 1) % rank.size;
    CHECK(ncclGroupStart());
    CHECK(ncclSend(rank.data, kElements, ncclFloat, next, rank.comm, rank.transfer));
    CHECK(ncclRecv(received, kElements, ncclFloat, previous, rank.comm, rank.transfer));
    CHECK(ncclGroupEnd());
    int wrong = rank.compare(received, static_cast<float>(previous));
    // Lengths that differ within a line of 8 bytes get through, as over NCCL: 8 bytes are sent and 4 asked for, and the
    // other way round.
    for (const size_t sent : {2, 1}) {
        CHECK(cudaMemsetAsync(received, 0xff, 2 * sizeof(float), rank.transfer));
        CHECK(ncclGroupStart());
        CHECK(ncclSend(rank.data, sent, ncclFloat, next, rank.comm, rank.transfer));
        CHECK(ncclRecv(received, 3 - sent, ncclFloat, previous, rank.comm, rank.transfer));
        CHECK(ncclGroupEnd());
        float pair[2];
        CHECK(cudaMemcpyAsync(pair, received, sizeof pair, cudaMemcpyDeviceToHost, rank.transfer));
        CHECK(cudaStreamSynchronize(rank.transfer));
        wrong += pair[0] != static_cast<float>(previous);
        wrong += sent == 1 ? pair[1] != 0 : pair[1] == pair[1];  // nothing came, or it was not written to
    }
    // Every rank sends its number to everybody: chunk p of what arrives is p.
    size_t chunk = kElements / static_cast<size_t>(rank.size);
    CHECK(ncclAlltoAll(rank.data, received, chunk, ncclFloat, rank.comm, rank.transfer));
    std::vector<float> out(kElements);
    CHECK(cudaMemcpyAsync(out.data(), received, kElements * sizeof(float), cudaMemcpyDeviceToHost, rank.transfer));
    CHECK(cudaStreamSynchronize(rank.transfer));
    for (int peer = 0; peer < rank.size; peer++)
        wrong += out[chunk * static_cast<size_t>(peer)] != static_cast<float>(peer);
    CHECK(cudaFree(received));
    return wrong;
}

void launchMany(Rank& rank) {
    for (int kernel = 0; kernel < 3000; kernel++) compute<<<850, 256, 0, rank.work>>>(rank.data);
    CHECK(cudaStreamSynchronize(rank.work));
}

int memory(Rank& rank) {
    constexpr int kBlocks = 65535;
    constexpr size_t kBytes = 12'000'000;
    void *fresh = nullptr, *pinned = nullptr, *device = nullptr;
    std::vector<char> pageable(kBytes);
    CHECK(cudaMallocHost(&pinned, kBytes));
    CHECK(cudaMalloc(&device, kBytes));
    compute<<<kBlocks, 1, 0, rank.work>>>(rank.data);
    CHECK(cudaMalloc(&fresh, 1 << 20));
    compute<<<kBlocks, 1, 0, rank.work>>>(rank.data);
    CHECK(cudaFree(fresh));
    CHECK(cudaMemcpyAsync(device, pageable.data(), kBytes, cudaMemcpyHostToDevice, rank.work));
    CHECK(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, rank.work));
    CHECK(cudaStreamSynchronize(rank.work));
    CHECK(cudaMemcpy(pinned, device, kBytes, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(pinned));
    return 0;
}

int graph(Rank& rank) {
    std::vector<float> host(kElements, static_cast<float>(rank.rank + 1));
    cudaEvent_t ready, reduced;
    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    cudaGraph_t captured;
    CHECK(cudaStreamBeginCapture(rank.work, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMemcpyAsync(rank.data, host.data(), kElements * sizeof(float), cudaMemcpyHostToDevice, rank.work));
    compute<<<100, 256, 0, rank.work>>>(rank.data);
    CHECK(cudaEventRecord(ready, rank.work));
    CHECK(cudaStreamWaitEvent(rank.transfer, ready, 0));
    CHECK(ncclAllReduce(rank.data, rank.data, kElements, ncclFloat, ncclSum, rank.comm, rank.transfer));
    CHECK(cudaEventRecord(reduced, rank.transfer));
    compute<<<200, 256, 0, rank.work>>>(rank.data);  // beside the all-reduce
    CHECK(cudaStreamWaitEvent(rank.work, reduced, 0));
    compute<<<300, 256, 0, rank.work>>>(rank.data);
    cudaStreamCaptureStatus capturing;
    CHECK(cudaStreamIsCapturing(rank.transfer, &capturing));
    if (capturing != cudaStreamCaptureStatusActive) return 1;
    CHECK(cudaStreamEndCapture(rank.work, &captured));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, captured, 0));
    CHECK(cudaGraphDestroy(captured));
    int wrong = 0;
    for (int launch = 0; launch < 3; launch++) {
        CHECK(cudaGraphLaunch(exec, rank.work));
        CHECK(cudaStreamSynchronize(rank.work));
        wrong += rank.compare(rank.data, static_cast<float>(rank.size * (rank.size + 1) / 2));
    }
    CHECK(cudaGraphExecDestroy(exec));

    CHECK(cudaStreamBeginCapture(rank.work,
                                 cudaStreamCaptureModeThreadLocal));  // a stream drawn in that does not lead back
    CHECK(cudaEventRecord(ready, rank.work));
    CHECK(cudaStreamWaitEvent(rank.transfer, ready, 0));
    compute<<<1, 1, 0, rank.transfer>>>(rank.data);
    wrong += cudaStreamEndCapture(rank.work, &captured) != cudaErrorStreamCaptureUnjoined || captured != nullptr;
    CHECK(
        cudaStreamBeginCapture(rank.work, cudaStreamCaptureModeThreadLocal));  // nobody can wait for what does not run
    wrong += cudaStreamSynchronize(rank.work) != cudaErrorStreamCaptureUnsupported;
    wrong += cudaStreamEndCapture(rank.work, &captured) != cudaErrorStreamCaptureInvalidated;
    CHECK(cudaStreamSynchronize(rank.transfer));
    cudaGetLastError();
    return wrong;
}

/// Virtual GPUs run only kernels whose host twin they know.
int structs(Rank& rank) {
    using Register = void (*)(const void*, void (*)(void**));
    if (auto body = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "rankscopeVgpuKernelBody")))
        body(reinterpret_cast<const void*>(take), takeOnHost);
    Wide wide{};
    wide.head[39] = 7;
    wide.tail = 35;
    int out = 0;
    take<<<1, 1, 0, rank.work>>>(wide, reinterpret_cast<int*>(rank.data));
    CHECK(cudaMemcpyAsync(&out, rank.data, sizeof out, cudaMemcpyDeviceToHost, rank.work));
    CHECK(cudaStreamSynchronize(rank.work));
    return out != 42;
}

int death(Rank& rank) {
    if (rank.rank == 1) raise(SIGKILL);
    CHECK(ncclAllReduce(rank.data, rank.data, kElements, ncclFloat, ncclSum, rank.comm, rank.transfer));
    ncclResult_t error = ncclSuccess;
    while (error == ncclSuccess) {
        usleep(1000);
        CHECK(ncclCommGetAsyncError(rank.comm, &error));
    }
    CHECK(ncclCommAbort(rank.comm));
    CHECK(cudaDeviceSynchronize());
    return error == ncclRemoteError ? 0 : 1;
}

int g_endOfRankOne[2] = {-1, -1};  // a pipe that rank 1 holds open until it ends

/// Returns once rank 1 has ended. That is asked of the system alone: on the virtual clock nobody waits for anybody
/// here.
void seeRankOneEnd() {
    syscall(SYS_close, g_endOfRankOne[1]);
    char byte;
    while (syscall(SYS_read, g_endOfRankOne[0], &byte, 1) > 0) {
    }
}

/// Who has nothing under way on a communicator does not mind that the others have left, without a word to anybody.
int leave(Rank& rank) {
    CHECK(ncclAllReduce(rank.data, rank.data, kElements, ncclFloat, ncclSum, rank.comm, rank.transfer));
    CHECK(cudaStreamSynchronize(rank.transfer));
    if (rank.rank == 1) _exit(0);
    seeRankOneEnd();
    ncclResult_t error = ncclInternalError;
    CHECK(ncclCommGetAsyncError(rank.comm, &error));
    CHECK(error);
    // Of what is begun now nothing can come, until nobody asks any more.
    CHECK(ncclAllReduce(rank.data, rank.data, kElements, ncclFloat, ncclSum, rank.comm, rank.transfer));
    while (error == ncclSuccess) {
        usleep(1000);
        CHECK(ncclCommGetAsyncError(rank.comm, &error));
    }
    if (error != ncclRemoteError) return 1;
    CHECK(ncclCommFinalize(rank.comm));
    CHECK(ncclCommGetAsyncError(rank.comm, &error));
    CHECK(ncclCommAbort(rank.comm));
    return error == ncclSuccess ? 0 : 1;
}

/// Who has destroyed its communicator may end while others, whose clocks are behind, still ask theirs.
int endEarly(Rank& rank) {
    CHECK(ncclAllReduce(rank.data, rank.data, kElements, ncclFloat, ncclSum, rank.comm, rank.transfer));
    CHECK(cudaStreamSynchronize(rank.transfer));
    if (rank.rank != 1) {
        seeRankOneEnd();
        ncclResult_t error = ncclSuccess;
        CHECK(ncclCommGetAsyncError(rank.comm, &error));
        CHECK(error);
    }
    CHECK(ncclCommDestroy(rank.comm));
    return 0;
}

int runRank(const std::string& mode, int number, int size, int steps, const ncclUniqueId& id) {
    setenv("RANK", std::to_string(number).c_str(), 1);
    std::srand(static_cast<unsigned>(getpid()));  // pauses differ from run to run, on purpose
    Rank rank{number, size};
    rank.open(id);
    int wrong = 0;
    if (mode == "p2p")
        wrong = messages(rank);
    else if (mode == "struct")
        wrong = structs(rank);
    else if (mode == "graph")
        wrong = graph(rank);
    else if (mode == "memory")
        wrong = memory(rank);
    else if (mode == "queue")
        launchMany(rank);
    else if (mode == "death")
        return death(rank);
    else if (mode == "leave")
        return leave(rank);
    else if (mode == "early")
        return endEarly(rank);
    else if (mode == "threads")
        std::thread([&] {
            CHECK(cudaSetDevice(0));
            wrong = train(rank, steps);
        }).join();
    else
        wrong = train(rank, steps);
    rank.close();
    return wrong != 0;
}

int allDevices(int count) {
    std::vector<ncclComm_t> comms(static_cast<size_t>(count));
    std::vector<float*> data(comms.size());
    std::vector<cudaStream_t> streams(comms.size());
    CHECK(ncclCommInitAll(comms.data(), count, nullptr));
    for (int d = 0; d < count; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaStreamCreate(&streams[d]));
        CHECK(cudaMalloc(reinterpret_cast<void**>(&data[d]), kElements * sizeof(float)));
        std::vector<float> host(kElements, static_cast<float>(d + 1));
        CHECK(cudaMemcpy(data[d], host.data(), kElements * sizeof(float), cudaMemcpyHostToDevice));
    }
    CHECK(ncclGroupStart());
    for (int d = 0; d < count; d++)
        CHECK(ncclAllReduce(data[d], data[d], kElements, ncclFloat, ncclSum, comms[d], streams[d]));
    CHECK(ncclGroupEnd());
    int wrong = 0;
    for (int d = 0; d < count; d++) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaStreamSynchronize(streams[d]));
        float first = 0;
        CHECK(cudaMemcpy(&first, data[d], sizeof first, cudaMemcpyDeviceToHost));
        wrong += first != static_cast<float>(count * (count + 1) / 2);
    }
    for (ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm));
    return wrong != 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 64;
    const std::string mode = argv[1];
    const int ranks = std::atoi(argv[2]), steps = argc > 3 ? std::atoi(argv[3]) : 3;
    g_jitter = mode == "jitter";
    if (mode == "devices") return allDevices(ranks);
    std::vector<int> pipes(static_cast<size_t>(ranks) * 2);
    for (int r = 0; r < ranks; r++)
        if (pipe(&pipes[2 * static_cast<size_t>(r)]) != 0) return 1;
    if (pipe(g_endOfRankOne) != 0) return 1;
    std::vector<pid_t> children;
    for (int r = 0; r < ranks; r++) {
        pid_t child = fork();
        if (child == 0) {
            ncclUniqueId id;
            if (r == 0) {
                setenv("RANK", "0", 1);
                CHECK(ncclGetUniqueId(&id));
                for (int peer = 1; peer < ranks; peer++)
                    if (write(pipes[2 * static_cast<size_t>(peer) + 1], &id, sizeof id) != sizeof id) return 1;
            } else if (read(pipes[2 * static_cast<size_t>(r)], &id, sizeof id) != sizeof id) {
                return 1;
            }
            return runRank(mode, r, ranks, steps, id);
        }
        children.push_back(child);
    }
    close(g_endOfRankOne[1]);
    int failures = 0;
    for (int r = 0; r < ranks; r++) {
        int status = 0;
        waitpid(children[static_cast<size_t>(r)], &status, 0);
        bool planted = mode == "death" && r == 1;
        if (planted ? !WIFSIGNALED(status) : status != 0) failures++;
    }
    return failures;
}

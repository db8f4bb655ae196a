// SPDX-License-Identifier: Apache-2.0
// Prints what errno is after each of many calls: the same with and without a recording.
#include <nvtx3/nvToolsExt.h>

#include <cerrno>
#include <cstdio>
#include <thread>

#include "gpu_calls.h"

namespace {

template <typename Call>
void show(const char* name, Call call) {
    for (int i = 0; i < 3; ++i) {
        errno = 77;
        call();
        const int kept = errno;
        std::printf("%s: %d\n", name, kept);
    }
}

void all() {
    void* memory = nullptr;
    cudaEvent_t event = nullptr;
    show("cudaMalloc", [&] { cudaMalloc(&memory, 64); });
    show("cudaMemset", [&] { cudaMemset(memory, 0, 64); });
    show("cudaMemcpyAsync", [&] { cudaMemcpyAsync(memory, memory, 64, cudaMemcpyDeviceToDevice, nullptr); });
    show("cudaFree", [&] { cudaFree(nullptr); });
    show("cudaEventRecord", [&] { cudaEventRecord(event, nullptr); });
    show("cudaStreamSynchronize", [&] { cudaStreamSynchronize(nullptr); });
    show("cudaDeviceSynchronize", [&] { cudaDeviceSynchronize(); });
    show("nvtxRangePush", [&] { nvtxRangePushA("range"); });
    show("nvtxRangePop", [&] { nvtxRangePop(); });
    // A ring's worth of calls, so that the moments of draining are among them.
    int changed = 0;
    for (int i = 0; i < 40000; ++i) {
        errno = 78;
        nvtxMarkA("mark");
        if (errno != 78) ++changed;
    }
    std::printf("changed %d times\n", changed);
}

}  // namespace

int main() {
    all();
    std::thread(all).join();
}

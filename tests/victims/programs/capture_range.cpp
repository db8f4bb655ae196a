// SPDX-License-Identifier: Apache-2.0
// Opens and closes the profiler's range twice, with calls inside and outside.
#include <cstdio>

#include "gpu_calls.h"

// As cuda_profiler_api.h has them, a header that comes in a package of its own.
extern "C" cudaError_t cudaProfilerStart(void);
extern "C" cudaError_t cudaProfilerStop(void);

int main() {
    callGpu(1);
    cudaProfilerStart();
    callGpu(20);
    cudaProfilerStop();
    callGpu(300);
    cudaProfilerStart();
    callGpu(4000);
    cudaProfilerStop();
    callGpu(50000);
    std::puts("done");
}

// SPDX-License-Identifier: Apache-2.0
// Opens and closes the profiler's range twice, with calls inside and outside.
#include <cstdio>
#include <cuda_profiler_api.h>

#include "gpu_calls.h"

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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

/// Calls a hooked function `times` times. What it returns depends on the machine (35 without a driver), but not on the
/// recording. Returns the last result.
inline int callGpu(int times) {
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < times; ++i) result = cudaStreamSynchronize(nullptr);
    return static_cast<int>(result);
}

/// Lets the runtime begin by a call that no hook sees: it is not made to be forked in the middle of its own first call.
inline void warmUpRuntime() {
    int devices = 0;
    cudaGetDeviceCount(&devices);
}

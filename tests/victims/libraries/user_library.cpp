// SPDX-License-Identifier: Apache-2.0
// A library of the user's that calls the CUDA runtime. Built plain, with -Bsymbolic, and with the static runtime
// inside.
#include <cuda_runtime_api.h>

extern "C" __attribute__((visibility("default"))) int userLibraryWork(int times) {
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < times; ++i) result = cudaStreamSynchronize(nullptr);
    return static_cast<int>(result);
}

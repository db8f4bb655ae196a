// SPDX-License-Identifier: Apache-2.0
// A handle of cuBLAS, which keeps what its calls need besides their arguments.
#pragma once

#include <cuda_runtime_api.h>

namespace rankscope::vgpu::math {

struct CublasHandle {
    cudaStream_t stream = nullptr;
    int math = 0, pointerMode = 0, atomics = 0, multiprocessors = 0;
    void* workspace = nullptr;
    size_t workspaceBytes = 0;
};

}  // namespace rankscope::vgpu::math

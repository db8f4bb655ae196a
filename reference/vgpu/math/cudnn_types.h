// SPDX-License-Identifier: Apache-2.0
// What cuDNN's functions have in common, as NVIDIA's "cuDNN API" reference (9.x) numbers it.
#pragma once

#include <cuda_runtime_api.h>

#include "reference/vgpu/math/matrix_product.h"

namespace rankscope::vgpu::math {

enum CudnnStatus : int {
    kCudnnSuccess = 0,
    kCudnnNotInitialized = 1001,
    kCudnnBadParameter = 2000,
    kCudnnNotSupported = 3000,
    kCudnnExecutionFailed = 5000,
};

struct CudnnHandle {
    cudaStream_t stream = nullptr;
};

}  // namespace rankscope::vgpu::math

// SPDX-License-Identifier: Apache-2.0
// What cuBLAS and cuBLASLt have in common, as NVIDIA's "cuBLAS Library User's Guide" (13.0) numbers it.
#pragma once

#include <cuda_runtime_api.h>

#include "reference/vgpu/math/matrix_product.h"

namespace rankscope::vgpu::math {

enum Status : int {
    kSuccess = 0,
    kNotInitialized = 1,
    kAllocFailed = 3,
    kInvalidValue = 7,
    kExecutionFailed = 13,
    kNotSupported = 15,
};

enum Operation : int { kPlain = 0, kTransposed = 1, kConjugated = 2 };

/// cublasComputeType_t: 32-bit floats that may be cut to TF32 inside.
inline constexpr int kCompute32fFastTf32 = 77;
/// cublasMath_t: CUBLAS_TF32_TENSOR_OP_MATH.
inline constexpr int kTf32Math = 3;

inline Status statusOf(cudaError_t error) {
    return error == cudaSuccess ? kSuccess : kExecutionFailed;
}

}  // namespace rankscope::vgpu::math

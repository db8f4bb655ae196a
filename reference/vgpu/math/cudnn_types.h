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

/// cudnnDataType_t as the data types that prices know; f32 for those that they do not.
inline DataType typeOfCudnn(int type) {
    switch (type) {
        case 1:
            return DataType::f64;
        case 2:
            return DataType::f16;
        case 3:
            return DataType::s8;
        case 4:
            return DataType::s32;
        case 6:
            return DataType::u8;
        case 9:
            return DataType::bf16;
        case 10:  // 64-bit integers move as many bytes
            return DataType::f64;
        case 11:
        case 22:
            return DataType::u8;
        case 12:
            return DataType::f8e4m3;
        case 13:
            return DataType::f8e5m2;
        default:
            return DataType::f32;
    }
}

struct CudnnHandle {
    cudaStream_t stream = nullptr;
};

}  // namespace rankscope::vgpu::math

// SPDX-License-Identifier: Apache-2.0
// What a matrix product costs and is called. The libraries of NVIDIA are declared here by their documentation (cuBLAS
// 13, cuDNN 9): their headers are not needed to build.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace rankscope::vgpu::math {

/// library_types.h, where it is needed.
enum class DataType : int {
    f32 = 0,
    f64 = 1,
    f16 = 2,
    s8 = 3,
    c32 = 4,
    c64 = 5,
    c16 = 6,
    u8 = 8,
    s32 = 10,
    bf16 = 14,
    c16bf = 15,
    f8e4m3 = 28,
    f8e5m2 = 29,
};

/// Bytes of one element; 0 for a type that is not known here.
double elementBytes(DataType type);

/// How the multiplication is done: the type of its inputs and whether 32-bit floats may be cut to TF32.
struct Arithmetic {
    DataType input = DataType::f32;
    DataType output = DataType::f32;
    bool tf32 = false;
};

/// The peak rate as a share of what the cluster's tflops are for, dense bf16. NVIDIA A100 Tensor Core GPU Architecture
/// (2020): 312 TFLOPS bf16 and fp16, 156 TF32, 19.5 FP32, 19.5 FP64 by tensor cores, 624 TOPS INT8; fp8, which the A100
/// has not, as int8.
double peakShare(const Arithmetic& arithmetic);

struct MatrixProduct {
    double m, n, k;
    double batch = 1;
    bool transposesA = false, transposesB = false;
    bool readsResult = false;  ///< beta is not zero
    Arithmetic arithmetic;
};

struct Cost {
    double flop, bytes;  ///< flop as if at the rate of bf16
};
Cost costOf(const MatrixProduct& product);

/// A name like those of cuBLAS for the A100; profilers know products by them.
std::string kernelName(const MatrixProduct& product);

/// Puts the product in the stream, as a kernel of 128 x 128 tiles.
cudaError_t launch(const MatrixProduct& product, cudaStream_t stream);
/// Any other kernel of a known cost, of so many elements to write.
cudaError_t launchPriced(const std::string& name, const Cost& cost, double elements, cudaStream_t stream);

}  // namespace rankscope::vgpu::math

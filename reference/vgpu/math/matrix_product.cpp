// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/math/matrix_product.h"

#include <algorithm>
#include <cmath>

extern "C" const void* rankscopeVgpuPricedKernel(const char* name);  // of librankscope_vgpu.so

namespace rankscope::vgpu::math {
namespace {

constexpr double kTile = 128;
constexpr unsigned kThreads = 256;
constexpr double kElementsPerBlock = 4 * kThreads;

bool isComplex(DataType type) {
    return type == DataType::c32 || type == DataType::c64 || type == DataType::c16 || type == DataType::c16bf;
}

unsigned blocksFor(double count) {
    return static_cast<unsigned>(std::clamp(std::ceil(count), 1.0, 2147483647.0));
}

cudaError_t launchGrid(const std::string& name, const Cost& cost, dim3 grid, cudaStream_t stream) {
    Cost argument = cost;
    void* arguments[] = {&argument};
    return cudaLaunchKernel(rankscopeVgpuPricedKernel(name.c_str()), grid, dim3(kThreads), arguments, 0, stream);
}

std::string stem(const Arithmetic& arithmetic) {
    switch (arithmetic.input) {
        case DataType::bf16:
            return arithmetic.output == DataType::f32 ? "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5"
                                                      : "ampere_bf16_s16816gemm_bf16_128x128_ldg8_relu_f2f_stages_32x5";
        case DataType::f16:
            return "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5";
        case DataType::f32:
            return arithmetic.tf32 ? "ampere_tf32_s1688gemm_128x128_ldg4_f2f_stages_16x3" : "ampere_sgemm_128x128";
        case DataType::f64:
            return "ampere_dgemm_128x128";
        case DataType::c32:
            return "ampere_cgemm_128x128";
        case DataType::c64:
            return "ampere_zgemm_128x128";
        case DataType::s8:
        case DataType::u8:
            return "ampere_int8_i16832gemm_int8_128x128_ldg16_stages_64x3";
        default:
            return "ampere_gemm_128x128";
    }
}

}  // namespace

double elementBytes(DataType type) {
    switch (type) {
        case DataType::f32:
        case DataType::c16:
        case DataType::c16bf:
        case DataType::s32:
            return 4;
        case DataType::f64:
        case DataType::c32:
            return 8;
        case DataType::c64:
            return 16;
        case DataType::f16:
        case DataType::bf16:
            return 2;
        case DataType::s8:
        case DataType::u8:
        case DataType::f8e4m3:
        case DataType::f8e5m2:
            return 1;
    }
    return 0;
}

double peakShare(const Arithmetic& arithmetic) {
    constexpr double kBf16 = 312, kTf32 = 156, kFp32 = 19.5, kFp64 = 19.5, kInt8 = 624;
    switch (arithmetic.input) {
        case DataType::f16:
        case DataType::bf16:
        case DataType::c16:
        case DataType::c16bf:
            return 1;
        case DataType::f64:
        case DataType::c64:
            return kFp64 / kBf16;
        case DataType::s8:
        case DataType::u8:
        case DataType::f8e4m3:
        case DataType::f8e5m2:
            return kInt8 / kBf16;
        default:
            return (arithmetic.tf32 ? kTf32 : kFp32) / kBf16;
    }
}

Cost costOf(const MatrixProduct& product) {
    const double operations = isComplex(product.arithmetic.input) ? 8 : 2;  // a complex product: 4 and 4
    const double in = elementBytes(product.arithmetic.input), out = elementBytes(product.arithmetic.output);
    const double read = in * (product.m * product.k + product.k * product.n);
    const double written = out * product.m * product.n * (product.readsResult ? 2 : 1);
    return {operations * product.batch * product.m * product.n * product.k / peakShare(product.arithmetic),
            product.batch * (read + written)};
}

std::string kernelName(const MatrixProduct& product) {
    return stem(product.arithmetic) + "_" + (product.transposesA ? "t" : "n") + (product.transposesB ? "t" : "n");
}

cudaError_t launch(const MatrixProduct& product, cudaStream_t stream) {
    if (product.m == 0 || product.n == 0 || product.batch == 0) return cudaSuccess;  // nothing to write
    const dim3 grid(blocksFor(product.m / kTile), std::min(blocksFor(product.n / kTile), 65535u),
                    std::min(blocksFor(product.batch), 65535u));
    return launchGrid(kernelName(product), costOf(product), grid, stream);
}

cudaError_t launchPriced(const std::string& name, const Cost& cost, double elements, cudaStream_t stream) {
    return launchGrid(name, cost, dim3(blocksFor(elements / kElementsPerBlock)), stream);
}

}  // namespace rankscope::vgpu::math

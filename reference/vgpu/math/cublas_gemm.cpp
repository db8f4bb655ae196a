// SPDX-License-Identifier: Apache-2.0
// Matrix products of cuBLAS. Matrices are not touched: kernels are not executed, they take their time.
#include "reference/vgpu/math/cublas_handle.h"
#include "reference/vgpu/math/cublas_types.h"

using namespace rankscope::vgpu::math;

namespace {

/// What every call has, besides matrices, scalars and strides.
struct Shape {
    int transA, transB, m, n, k;
    int batch = 1;
};

int multiply(CublasHandle* handle, const Shape& shape, DataType input, DataType output, bool tf32) {
    if (!handle) return kNotInitialized;
    if (shape.m < 0 || shape.n < 0 || shape.k < 0 || shape.batch < 0) return kInvalidValue;
    if (elementBytes(input) == 0 || elementBytes(output) == 0) return kNotSupported;
    MatrixProduct product;
    product.m = shape.m;
    product.n = shape.n;
    product.k = shape.k;
    product.batch = shape.batch;
    product.transposesA = shape.transA != kPlain;
    product.transposesB = shape.transB != kPlain;
    product.arithmetic = {input, output, tf32};
    return statusOf(launch(product, handle->stream));
}

int multiply(CublasHandle* handle, const Shape& shape, DataType type) {
    return multiply(handle, shape, type, type, handle && handle->math == kTf32Math);
}

int multiplyBy(CublasHandle* handle, const Shape& shape, int aType, int cType, int computeType) {
    const bool tf32 = computeType == kCompute32fFastTf32 || (handle && handle->math == kTf32Math);
    return multiply(handle, shape, static_cast<DataType>(aType), static_cast<DataType>(cType), tf32);
}

}  // namespace

#define RANKSCOPE_GEMM(letter, Element, type)                                                                          \
    int cublas##letter##gemm_v2(CublasHandle* handle, int transA, int transB, int m, int n, int k, const Element*,     \
                                const Element*, int, const Element*, int, const Element*, Element*, int) {             \
        return multiply(handle, {transA, transB, m, n, k}, type);                                                      \
    }                                                                                                                  \
    int cublas##letter##gemmStridedBatched(CublasHandle* handle, int transA, int transB, int m, int n, int k,          \
                                           const Element*, const Element*, int, long long, const Element*, int,        \
                                           long long, const Element*, Element*, int, long long, int batch) {           \
        return multiply(handle, {transA, transB, m, n, k, batch}, type);                                               \
    }                                                                                                                  \
    int cublas##letter##gemmBatched(CublasHandle* handle, int transA, int transB, int m, int n, int k, const Element*, \
                                    const Element* const[], int, const Element* const[], int, const Element*,          \
                                    Element* const[], int, int batch) {                                                \
        return multiply(handle, {transA, transB, m, n, k, batch}, type);                                               \
    }

extern "C" {

RANKSCOPE_GEMM(S, float, DataType::f32)
RANKSCOPE_GEMM(D, double, DataType::f64)
RANKSCOPE_GEMM(C, void, DataType::c32)
RANKSCOPE_GEMM(Z, void, DataType::c64)
RANKSCOPE_GEMM(H, void, DataType::f16)

int cublasGemmEx(CublasHandle* handle, int transA, int transB, int m, int n, int k, const void*, const void*, int aType,
                 int, const void*, int, int, const void*, void*, int cType, int, int computeType, int) {
    return multiplyBy(handle, {transA, transB, m, n, k}, aType, cType, computeType);
}
int cublasSgemmEx(CublasHandle* handle, int transA, int transB, int m, int n, int k, const float*, const void*,
                  int aType, int, const void*, int, int, const float*, void*, int cType, int) {
    return multiplyBy(handle, {transA, transB, m, n, k}, aType, cType, 0);
}
int cublasGemmStridedBatchedEx(CublasHandle* handle, int transA, int transB, int m, int n, int k, const void*,
                               const void*, int aType, int, long long, const void*, int, int, long long, const void*,
                               void*, int cType, int, long long, int batch, int computeType, int) {
    return multiplyBy(handle, {transA, transB, m, n, k, batch}, aType, cType, computeType);
}
int cublasGemmBatchedEx(CublasHandle* handle, int transA, int transB, int m, int n, int k, const void*,
                        const void* const[], int aType, int, const void* const[], int, int, const void*, void* const[],
                        int cType, int, int batch, int computeType, int) {
    return multiplyBy(handle, {transA, transB, m, n, k, batch}, aType, cType, computeType);
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of cuDNN's older API, which PyTorch uses. It is bound by memory.
#include "reference/vgpu/math/cudnn_tensor.h"

using namespace rankscope::vgpu::math;

namespace {

int normalize(CudnnHandle* handle, const char* name, const CudnnTensor* x, double passes) {
    if (!handle || !x) return kCudnnBadParameter;
    const cudaError_t result = launchPriced(name, {0, passes * x->bytes()}, x->elements(), handle->stream);
    return result == cudaSuccess ? kCudnnSuccess : kCudnnExecutionFailed;
}

int noBytes(size_t* bytes) {
    if (!bytes) return kCudnnBadParameter;
    *bytes = 0;
    return kCudnnSuccess;
}

// How often a tensor as large as x is read or written. Training reads x for its moments and once more to scale it, and
// writes y; backward reads x and dy for the sums, both once more, and writes dx.
constexpr double kTrainingPasses = 3, kBackwardPasses = 5, kInferencePasses = 2;

}  // namespace

extern "C" {

int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(CudnnHandle*, int, int, const CudnnTensor*,
                                                             const CudnnTensor*, const CudnnTensor*, const CudnnTensor*,
                                                             const CudnnActivation*, size_t* bytes) {
    return noBytes(bytes);
}
int cudnnGetBatchNormalizationBackwardExWorkspaceSize(CudnnHandle*, int, int, const CudnnTensor*, const CudnnTensor*,
                                                      const CudnnTensor*, const CudnnTensor*, const CudnnTensor*,
                                                      const CudnnTensor*, const CudnnActivation*, size_t* bytes) {
    return noBytes(bytes);
}
int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(CudnnHandle*, int, int, const CudnnActivation*,
                                                         const CudnnTensor*, size_t* bytes) {
    return noBytes(bytes);
}

int cudnnBatchNormalizationForwardTrainingEx(CudnnHandle* handle, int, int, const void*, const void*,
                                             const CudnnTensor* x, const void*, const CudnnTensor*, const void*,
                                             const CudnnTensor*, void*, const CudnnTensor*, const void*, const void*,
                                             double, void*, void*, double, void*, void*, const CudnnActivation*, void*,
                                             size_t, void*, size_t) {
    return normalize(handle, "cudnn_batch_norm_fwd_training_nhwc", x, kTrainingPasses);
}
int cudnnBatchNormalizationBackwardEx(CudnnHandle* handle, int, int, const void*, const void*, const void*, const void*,
                                      const CudnnTensor* x, const void*, const CudnnTensor*, const void*,
                                      const CudnnTensor*, const void*, const CudnnTensor*, void*, const CudnnTensor*,
                                      void*, const CudnnTensor*, const void*, const void*, void*, void*, double,
                                      const void*, const void*, const CudnnActivation*, void*, size_t, void*, size_t) {
    return normalize(handle, "cudnn_batch_norm_bwd_nhwc", x, kBackwardPasses);
}
int cudnnBatchNormalizationForwardInference(CudnnHandle* handle, int, const void*, const void*, const CudnnTensor* x,
                                            const void*, const CudnnTensor*, void*, const CudnnTensor*, const void*,
                                            const void*, const void*, const void*, double) {
    return normalize(handle, "cudnn_batch_norm_fwd_inference", x, kInferencePasses);
}

}  // extern "C"

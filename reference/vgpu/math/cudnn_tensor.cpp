// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/math/cudnn_tensor.h"

#include <algorithm>

using namespace rankscope::vgpu::math;

extern "C" {

int cudnnCreateTensorDescriptor(CudnnTensor** tensor) {
    if (!tensor) return kCudnnBadParameter;
    *tensor = new CudnnTensor;
    return kCudnnSuccess;
}
int cudnnDestroyTensorDescriptor(CudnnTensor* tensor) {
    delete tensor;
    return kCudnnSuccess;
}
int cudnnSetTensorNdDescriptor(CudnnTensor* tensor, int type, int count, const int dimensions[], const int strides[]) {
    if (!tensor || count < 1 || !dimensions || !strides) return kCudnnBadParameter;
    tensor->type = type;
    tensor->dimensions.assign(dimensions, dimensions + count);
    tensor->strides.assign(strides, strides + count);
    return kCudnnSuccess;
}
int cudnnGetTensorNdDescriptor(const CudnnTensor* tensor, int asked, int* type, int* count, int dimensions[],
                               int strides[]) {
    if (!tensor || !type || !count) return kCudnnBadParameter;
    *type = tensor->type;
    *count = static_cast<int>(tensor->dimensions.size());
    const auto given = static_cast<size_t>(std::clamp(asked, 0, *count));
    if (dimensions) std::copy_n(tensor->dimensions.begin(), given, dimensions);
    if (strides) std::copy_n(tensor->strides.begin(), given, strides);
    return kCudnnSuccess;
}

int cudnnCreateActivationDescriptor(CudnnActivation** activation) {
    if (!activation) return kCudnnBadParameter;
    *activation = new CudnnActivation;
    return kCudnnSuccess;
}
int cudnnDestroyActivationDescriptor(CudnnActivation* activation) {
    delete activation;
    return kCudnnSuccess;
}
int cudnnSetActivationDescriptor(CudnnActivation* activation, int mode, int nanOption, double coefficient) {
    if (!activation) return kCudnnBadParameter;
    *activation = {mode, nanOption, coefficient};
    return kCudnnSuccess;
}

}  // extern "C"

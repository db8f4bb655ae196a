// SPDX-License-Identifier: Apache-2.0
// Descriptors of cuDNN's older API.
#pragma once

#include <vector>

#include "reference/vgpu/math/cudnn_types.h"

namespace rankscope::vgpu::math {

struct CudnnTensor {
    int type = 0;  ///< cudnnDataType_t
    std::vector<int> dimensions, strides;

    double elements() const {
        double all = dimensions.empty() ? 0 : 1;
        for (const int size : dimensions) all *= size;
        return all;
    }
    double bytes() const { return elements() * elementBytes(typeOfCudnn(type)); }
};

struct CudnnActivation {
    int mode = 0, nanOption = 0;
    double coefficient = 0;
};

}  // namespace rankscope::vgpu::math

// SPDX-License-Identifier: Apache-2.0
// Element-wise reduction of NCCL's data types on the host.
#pragma once

#include <cstddef>

#include "reference/vgpu/engine/public_api.h"

namespace rankscope::vgpu {

/// 0 for an unknown type.
size_t elementBytes(ncclDataType_t type);

struct Reduction {
    ncclDataType_t type = ncclFloat32;
    ncclRedOp_t op = ncclSum;  ///< sum, prod, min, max or avg
    double preScale = 1;       ///< of ncclRedOpCreatePreMulSum
};

/// out = reduction of `inputs`, in their order; `bytes` is a whole number of elements.
void reduceElements(const Reduction& reduction, const std::byte* const* inputs, size_t inputCount, std::byte* out,
                    size_t bytes);

}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
// Scenario types as NCCL names them.
#pragma once

#include <nccl.h>

#include "reference/workloads/scenario.h"

namespace rankscope::reference {

inline ncclDataType_t ncclType(Dtype dtype) {
    switch (dtype) {
        case Dtype::bf16:
            return ncclBfloat16;
        case Dtype::fp16:
            return ncclFloat16;
        case Dtype::fp32:
            return ncclFloat32;
    }
    return ncclFloat32;
}

}  // namespace rankscope::reference

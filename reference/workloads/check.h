// SPDX-License-Identifier: Apache-2.0
// One helper for the result of every CUDA and NCCL call.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdexcept>
#include <string>

namespace rankscope::reference {

struct DeviceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void require(cudaError_t status, const char* call) {
    if (status != cudaSuccess)
        throw DeviceError(std::string(call) + ": " + cudaGetErrorString(status) + " (" + std::to_string(status) + ")");
}

inline void require(ncclResult_t status, const char* call) {
    if (status != ncclSuccess)
        throw DeviceError(std::string(call) + ": " + ncclGetErrorString(status) + " (" + std::to_string(status) + ")");
}

}  // namespace rankscope::reference

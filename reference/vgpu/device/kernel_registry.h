// SPDX-License-Identifier: Apache-2.0
// The kernels of the program: names as nvcc registered them, what they cost, and the host twins of those whose data
// matters.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/device/kernel_family.h"

namespace rankscope::vgpu {

struct Kernel {
    const void* hostFunction;
    std::string name;                    ///< mangled
    bool declaresCost;                   ///< its first parameter is a KernelCost
    std::vector<size_t> parameterBytes;  ///< as far as the mangled name tells; 0: a struct
    std::optional<KernelFamily> family;
    size_t largestStruct =
        4096;  ///< no struct parameter takes more bytes; by default what all parameters of a kernel may take together
    void (*body)(void** args) = nullptr;
    mutable std::atomic<bool> wasLaunched{false};
};

void registerKernel(const void* hostFunction, const char* mangledName);
/// A kernel of a module loaded at run time, without a host stub.
Kernel* registerLoadedKernel(const std::string& name);
/// The kernel of that name whose first argument is a KernelCost; made at the first call.
const Kernel* pricedKernel(const std::string& name);
/// By host stub or by the handle of __cudaGetKernel; null if unknown.
Kernel* findKernel(const void* function);

/// Duration of a kernel that declares its work, or that no operator speaks for; on a healthy device without noise.
double kernelWorkNs(const LocalProcess& process, const KernelLaunch& launch);

/// The twin with its arguments copied, ready to run later; empty if the kernel has none.
std::function<void()> kernelBody(const KernelLaunch& launch);

}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
// The kernels of the reference workloads. Each costs what its KernelCost says: on a virtual GPU by its model, on a real
// one by spinning for about that long.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "reference/workloads/kernel_cost.h"
#include "reference/workloads/kernel_task.h"

// One line per kernel: the names a person sees on the timeline.
#define RANKSCOPE_REFERENCE_KERNELS(X) \
    X(layerNormForward)                \
    X(qkvGemmForward)                  \
    X(attentionForward)                \
    X(projectionGemmForward)           \
    X(mlpUpGemmForward)                \
    X(mlpDownGemmForward)              \
    X(layerNormBackward)               \
    X(qkvGemmBackward)                 \
    X(attentionBackward)               \
    X(projectionGemmBackward)          \
    X(mlpUpGemmBackward)               \
    X(mlpDownGemmBackward)             \
    X(routerGemmForward)               \
    X(routerGemmBackward)              \
    X(permuteTokens)                   \
    X(unpermuteTokens)                 \
    X(embeddingForward)                \
    X(crossEntropyLoss)                \
    X(accumulateGradient)              \
    X(adamStep)                        \
    X(castParameters)

namespace rankscope::reference {

enum class Dtype : uint8_t;

enum class Kernel {
#define RANKSCOPE_NAME_KERNEL(name) name,
    RANKSCOPE_REFERENCE_KERNELS(RANKSCOPE_NAME_KERNEL)
#undef RANKSCOPE_NAME_KERNEL
};

/// By Kernel.
inline constexpr std::string_view kKernelNames[] = {
#define RANKSCOPE_NAME_KERNEL(name) #name,
    RANKSCOPE_REFERENCE_KERNELS(RANKSCOPE_NAME_KERNEL)
#undef RANKSCOPE_NAME_KERNEL
};

inline constexpr unsigned kThreadsPerBlock = 256;

/// `dtype` is what the model computes in: a part of the kernel's name.
cudaError_t launchKernel(Kernel kernel, Dtype dtype, unsigned blocks, cudaStream_t stream, const KernelCost& cost,
                         const KernelTask& task);

/// Tells a virtual GPU what the kernels do to their buffers. `registerBody` is its rankscopeVgpuKernelBody,
/// `limitStructs` its rankscopeVgpuKernelStructs.
void registerHostTwins(void (*registerBody)(const void* hostFunction, void (*body)(void** arguments)),
                       void (*limitStructs)(const void* hostFunction, size_t largestBytes));

}  // namespace rankscope::reference

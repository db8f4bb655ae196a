// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/kernels.h"
#include "reference/workloads/scenario.h"

// Names only: the element type stands in the kernel's name, as it does in real ones.
struct __nv_bfloat16;
struct __half;

namespace rankscope::reference {

namespace {

__device__ unsigned long long globalTimeNs() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__host__ __device__ KernelTask join(const TaskTarget& target, const TaskRange& range, const TaskMoment& moment) {
    KernelTask task;
    static_cast<TaskTarget&>(task) = target;
    static_cast<TaskRange&>(task) = range;
    static_cast<TaskMoment&>(task) = moment;
    return task;
}

__device__ __noinline__ void runKernel(const KernelTask& task) {
    const unsigned long long start = globalTimeNs();
    if (blockIdx.x == 0) runTask(task, threadIdx.x, blockDim.x);
    if (threadIdx.x != 0) return;  // one thread keeps the block resident
    while (static_cast<double>(globalTimeNs() - start) < task.spinNsPerBlock) {
    }
}

void runHostTwin(void** arguments) {
    runTask(join(*static_cast<const TaskTarget*>(arguments[1]), *static_cast<const TaskRange*>(arguments[2]),
                 *static_cast<const TaskMoment*>(arguments[3])),
            0, 1);
}

}  // namespace

#define RANKSCOPE_DEFINE_KERNEL(name)                                             \
    template <typename Element>                                                   \
    __global__ void __launch_bounds__(kThreadsPerBlock)                           \
        name(KernelCost, TaskTarget target, TaskRange range, TaskMoment moment) { \
        runKernel(join(target, range, moment));                                   \
    }
RANKSCOPE_REFERENCE_KERNELS(RANKSCOPE_DEFINE_KERNEL)
#undef RANKSCOPE_DEFINE_KERNEL

template <typename Element>
static void launchTyped(Kernel kernel, unsigned blocks, cudaStream_t stream, const KernelCost& cost,
                        const KernelTask& task) {
    switch (kernel) {
#define RANKSCOPE_LAUNCH_KERNEL(name)                                                   \
    case Kernel::name:                                                                  \
        name<Element><<<blocks, kThreadsPerBlock, 0, stream>>>(cost, task, task, task); \
        break;
        RANKSCOPE_REFERENCE_KERNELS(RANKSCOPE_LAUNCH_KERNEL)
#undef RANKSCOPE_LAUNCH_KERNEL
    }
}

cudaError_t launchKernel(Kernel kernel, Dtype dtype, unsigned blocks, cudaStream_t stream, const KernelCost& cost,
                         const KernelTask& task) {
    switch (dtype) {
        case Dtype::bf16:
            launchTyped<__nv_bfloat16>(kernel, blocks, stream, cost, task);
            break;
        case Dtype::fp16:
            launchTyped<__half>(kernel, blocks, stream, cost, task);
            break;
        case Dtype::fp32:
            launchTyped<float>(kernel, blocks, stream, cost, task);
            break;
    }
    return cudaGetLastError();
}

void registerHostTwins(void (*registerBody)(const void*, void (*)(void**)), void (*limitStructs)(const void*, size_t)) {
    const auto add = [&](auto* kernel) {
        registerBody(reinterpret_cast<const void*>(kernel), runHostTwin);
        limitStructs(reinterpret_cast<const void*>(kernel), kTaskParameterBytes);
    };
#define RANKSCOPE_REGISTER_KERNEL(name) \
    add(&name<__nv_bfloat16>);          \
    add(&name<__half>);                 \
    add(&name<float>);
    RANKSCOPE_REFERENCE_KERNELS(RANKSCOPE_REGISTER_KERNEL)
#undef RANKSCOPE_REGISTER_KERNEL
}

}  // namespace rankscope::reference

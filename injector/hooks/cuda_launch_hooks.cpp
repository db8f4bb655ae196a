// SPDX-License-Identifier: Apache-2.0
// Launches of the CUDA runtime. nvcc 13's <<<>>> calls __cudaLaunchKernel, older ones cudaLaunchKernel.
#include "injector/export.h"
#include "injector/hooks/cuda_call.h"
#include "injector/real_symbol.h"

using namespace rankscope::injector;
using rankscope::capture::CudaApi;

#define RANKSCOPE_LAUNCH(function, api)                                                                               \
    RANKSCOPE_CUDA_HOOK(                                                                                              \
        function, api, stream,                                                                                        \
        (const void* kernel, CudaDim3 grid, CudaDim3 block, void** arguments, size_t sharedBytes, CudaStream stream), \
        kernel, grid, block, arguments, sharedBytes, stream)

RANKSCOPE_LAUNCH(cudaLaunchKernel, launchKernel);
RANKSCOPE_LAUNCH(cudaLaunchKernel_ptsz, launchKernel);
RANKSCOPE_LAUNCH(__cudaLaunchKernel, launchKernel);
RANKSCOPE_LAUNCH(__cudaLaunchKernel_ptsz, launchKernel);
RANKSCOPE_LAUNCH(cudaLaunchCooperativeKernel, launchCooperative);
RANKSCOPE_LAUNCH(cudaLaunchCooperativeKernel_ptsz, launchCooperative);

#define RANKSCOPE_LAUNCH_EXTENDED(function)                                                                     \
    RANKSCOPE_CUDA_HOOK(function, launchKernelExC, config == nullptr ? nullptr : config->stream,                \
                        (const CudaLaunchConfig* config, const void* kernel, void** arguments), config, kernel, \
                        arguments)

RANKSCOPE_LAUNCH_EXTENDED(cudaLaunchKernelExC);
RANKSCOPE_LAUNCH_EXTENDED(cudaLaunchKernelExC_ptsz);

RANKSCOPE_CUDA_HOOK(cudaGraphLaunch, graphLaunch, stream, (void* graph, CudaStream stream), graph, stream);
RANKSCOPE_CUDA_HOOK(cudaGraphLaunch_ptsz, graphLaunch, stream, (void* graph, CudaStream stream), graph, stream);

// CUDA 11 passes five arguments, CUDA 12 and later three. All travel in registers, so passing five suits both.
RANKSCOPE_CUDA_HOOK(cudaGraphInstantiate, graphInstantiate, graph,
                    (void** executable, void* graph, uint64_t a, uint64_t b, uint64_t c), executable, graph, a, b, c);
RANKSCOPE_CUDA_HOOK(cudaGraphInstantiateWithFlags, graphInstantiate, graph,
                    (void** executable, void* graph, unsigned long long flags), executable, graph, flags);

// SPDX-License-Identifier: Apache-2.0
// Allocations, copies and sets of the CUDA runtime.
#include "injector/export.h"
#include "injector/hooks/cuda_call.h"
#include "injector/real_symbol.h"

using namespace rankscope::injector;
using rankscope::capture::CudaApi;

/// As RANKSCOPE_CUDA_HOOK, and the address that came out of it; none when it was refused.
#define RANKSCOPE_ALLOCATION(function, api, parameters, ...)                                                           \
    RANKSCOPE_CUDA_FUNCTION(function, parameters, (__VA_ARGS__), if (!isRecordedCudaCall()) return real(__VA_ARGS__);  \
                            const int result = recordCudaCall(CudaApi::api, bytes, [&] { return real(__VA_ARGS__); }); \
                            if (address != nullptr)                                                                    \
                                recordAllocation(CudaApi::api, bytes, result == 0 ? *address : nullptr);               \
                            return result;)

#define RANKSCOPE_RELEASE(function, api, parameters, ...)                                                            \
    RANKSCOPE_CUDA_FUNCTION(                                                                                         \
        function, parameters, (__VA_ARGS__), if (!isRecordedCudaCall()) return real(__VA_ARGS__);                    \
        recordAllocation(CudaApi::api, 0, address); /* before: afterwards another thread may get the same address */ \
        return recordCudaCall(CudaApi::api, toArgument(address), [&] { return real(__VA_ARGS__); });)

RANKSCOPE_ALLOCATION(cudaMalloc, malloc, (void** address, size_t bytes), address, bytes);
RANKSCOPE_ALLOCATION(cudaMallocHost, mallocHost, (void** address, size_t bytes), address, bytes);
RANKSCOPE_ALLOCATION(cudaHostAlloc, hostAlloc, (void** address, size_t bytes, unsigned flags), address, bytes, flags);
RANKSCOPE_ALLOCATION(cudaMallocManaged, mallocManaged, (void** address, size_t bytes, unsigned flags), address, bytes,
                     flags);
RANKSCOPE_ALLOCATION(cudaMallocAsync, mallocAsync, (void** address, size_t bytes, CudaStream stream), address, bytes,
                     stream);
RANKSCOPE_ALLOCATION(cudaMallocAsync_ptsz, mallocAsync, (void** address, size_t bytes, CudaStream stream), address,
                     bytes, stream);
RANKSCOPE_ALLOCATION(cudaMallocFromPoolAsync, mallocAsync,
                     (void** address, size_t bytes, void* pool, CudaStream stream), address, bytes, pool, stream);
RANKSCOPE_ALLOCATION(cudaMallocFromPoolAsync_ptsz, mallocAsync,
                     (void** address, size_t bytes, void* pool, CudaStream stream), address, bytes, pool, stream);

RANKSCOPE_RELEASE(cudaFree, free, (void* address), address);
RANKSCOPE_RELEASE(cudaFreeHost, freeHost, (void* address), address);
RANKSCOPE_RELEASE(cudaFreeAsync, freeAsync, (void* address, CudaStream stream), address, stream);
RANKSCOPE_RELEASE(cudaFreeAsync_ptsz, freeAsync, (void* address, CudaStream stream), address, stream);

#define RANKSCOPE_COPY(function)                                                                                 \
    RANKSCOPE_CUDA_HOOK(function, memcpy, bytes, (void* to, const void* from, size_t bytes, int kind), to, from, \
                        bytes, kind)
#define RANKSCOPE_COPY_ASYNC(function)                                                                            \
    RANKSCOPE_CUDA_HOOK(function, memcpyAsync, bytes,                                                             \
                        (void* to, const void* from, size_t bytes, int kind, CudaStream stream), to, from, bytes, \
                        kind, stream)
RANKSCOPE_COPY(cudaMemcpy);
RANKSCOPE_COPY(cudaMemcpy_ptds);
RANKSCOPE_COPY_ASYNC(cudaMemcpyAsync);
RANKSCOPE_COPY_ASYNC(cudaMemcpyAsync_ptsz);

#define RANKSCOPE_COPY_2D(function)                                                                                \
    RANKSCOPE_CUDA_HOOK(                                                                                           \
        function, memcpy2D, width* height,                                                                         \
        (void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height, int kind), to, \
        toPitch, from, fromPitch, width, height, kind)
#define RANKSCOPE_COPY_2D_ASYNC(function)                                                                           \
    RANKSCOPE_CUDA_HOOK(function, memcpy2DAsync, width* height,                                                     \
                        (void* to, size_t toPitch, const void* from, size_t fromPitch, size_t width, size_t height, \
                         int kind, CudaStream stream),                                                              \
                        to, toPitch, from, fromPitch, width, height, kind, stream)
RANKSCOPE_COPY_2D(cudaMemcpy2D);
RANKSCOPE_COPY_2D(cudaMemcpy2D_ptds);
RANKSCOPE_COPY_2D_ASYNC(cudaMemcpy2DAsync);
RANKSCOPE_COPY_2D_ASYNC(cudaMemcpy2DAsync_ptsz);

RANKSCOPE_CUDA_HOOK(cudaMemcpyPeer, memcpyPeer, bytes,
                    (void* to, int toDevice, const void* from, int fromDevice, size_t bytes), to, toDevice, from,
                    fromDevice, bytes);
RANKSCOPE_CUDA_HOOK(cudaMemcpyPeerAsync, memcpyPeerAsync, bytes,
                    (void* to, int toDevice, const void* from, int fromDevice, size_t bytes, CudaStream stream), to,
                    toDevice, from, fromDevice, bytes, stream);

RANKSCOPE_CUDA_HOOK(cudaMemset, memset, bytes, (void* to, int value, size_t bytes), to, value, bytes);
RANKSCOPE_CUDA_HOOK(cudaMemset_ptds, memset, bytes, (void* to, int value, size_t bytes), to, value, bytes);
RANKSCOPE_CUDA_HOOK(cudaMemsetAsync, memsetAsync, bytes, (void* to, int value, size_t bytes, CudaStream stream), to,
                    value, bytes, stream);
RANKSCOPE_CUDA_HOOK(cudaMemsetAsync_ptsz, memsetAsync, bytes, (void* to, int value, size_t bytes, CudaStream stream),
                    to, value, bytes, stream);

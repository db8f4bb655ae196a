// SPDX-License-Identifier: Apache-2.0
// cudaDeviceProp as headers of CUDA 12 declare it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>

namespace rankscope::vgpu::cuda12 {

/// Its number in CUDA 12's cudaDeviceAttr.
inline constexpr auto kCooperativeMultiDeviceLaunch = static_cast<cudaDeviceAttr>(96);

/// In order: SAME(type, name, dimensions) for what CUDA 13 has under that name, GONE(name, attribute) for an int that
/// it has no more, whose value is that of a device attribute.
#define RANKSCOPE_PROPERTIES_12(SAME, GONE)                                             \
    SAME(char, name, [256])                                                             \
    SAME(cudaUUID_t, uuid, )                                                            \
    SAME(char, luid, [8])                                                               \
    SAME(unsigned, luidDeviceNodeMask, )                                                \
    SAME(size_t, totalGlobalMem, )                                                      \
    SAME(size_t, sharedMemPerBlock, )                                                   \
    SAME(int, regsPerBlock, )                                                           \
    SAME(int, warpSize, )                                                               \
    SAME(size_t, memPitch, )                                                            \
    SAME(int, maxThreadsPerBlock, )                                                     \
    SAME(int, maxThreadsDim, [3])                                                       \
    SAME(int, maxGridSize, [3])                                                         \
    GONE(clockRate, cudaDevAttrClockRate)                                               \
    SAME(size_t, totalConstMem, )                                                       \
    SAME(int, major, )                                                                  \
    SAME(int, minor, )                                                                  \
    SAME(size_t, textureAlignment, )                                                    \
    SAME(size_t, texturePitchAlignment, )                                               \
    GONE(deviceOverlap, cudaDevAttrGpuOverlap)                                          \
    SAME(int, multiProcessorCount, )                                                    \
    GONE(kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout)                        \
    SAME(int, integrated, )                                                             \
    SAME(int, canMapHostMemory, )                                                       \
    GONE(computeMode, cudaDevAttrComputeMode)                                           \
    SAME(int, maxTexture1D, )                                                           \
    SAME(int, maxTexture1DMipmap, )                                                     \
    GONE(maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth)                        \
    SAME(int, maxTexture2D, [2])                                                        \
    SAME(int, maxTexture2DMipmap, [2])                                                  \
    SAME(int, maxTexture2DLinear, [3])                                                  \
    SAME(int, maxTexture2DGather, [2])                                                  \
    SAME(int, maxTexture3D, [3])                                                        \
    SAME(int, maxTexture3DAlt, [3])                                                     \
    SAME(int, maxTextureCubemap, )                                                      \
    SAME(int, maxTexture1DLayered, [2])                                                 \
    SAME(int, maxTexture2DLayered, [3])                                                 \
    SAME(int, maxTextureCubemapLayered, [2])                                            \
    SAME(int, maxSurface1D, )                                                           \
    SAME(int, maxSurface2D, [2])                                                        \
    SAME(int, maxSurface3D, [3])                                                        \
    SAME(int, maxSurface1DLayered, [2])                                                 \
    SAME(int, maxSurface2DLayered, [3])                                                 \
    SAME(int, maxSurfaceCubemap, )                                                      \
    SAME(int, maxSurfaceCubemapLayered, [2])                                            \
    SAME(size_t, surfaceAlignment, )                                                    \
    SAME(int, concurrentKernels, )                                                      \
    SAME(int, ECCEnabled, )                                                             \
    SAME(int, pciBusID, )                                                               \
    SAME(int, pciDeviceID, )                                                            \
    SAME(int, pciDomainID, )                                                            \
    SAME(int, tccDriver, )                                                              \
    SAME(int, asyncEngineCount, )                                                       \
    SAME(int, unifiedAddressing, )                                                      \
    GONE(memoryClockRate, cudaDevAttrMemoryClockRate)                                   \
    SAME(int, memoryBusWidth, )                                                         \
    SAME(int, l2CacheSize, )                                                            \
    SAME(int, persistingL2CacheMaxSize, )                                               \
    SAME(int, maxThreadsPerMultiProcessor, )                                            \
    SAME(int, streamPrioritiesSupported, )                                              \
    SAME(int, globalL1CacheSupported, )                                                 \
    SAME(int, localL1CacheSupported, )                                                  \
    SAME(size_t, sharedMemPerMultiprocessor, )                                          \
    SAME(int, regsPerMultiprocessor, )                                                  \
    SAME(int, managedMemory, )                                                          \
    SAME(int, isMultiGpuBoard, )                                                        \
    SAME(int, multiGpuBoardGroupID, )                                                   \
    SAME(int, hostNativeAtomicSupported, )                                              \
    GONE(singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio) \
    SAME(int, pageableMemoryAccess, )                                                   \
    SAME(int, concurrentManagedAccess, )                                                \
    SAME(int, computePreemptionSupported, )                                             \
    SAME(int, canUseHostPointerForRegisteredMem, )                                      \
    SAME(int, cooperativeLaunch, )                                                      \
    GONE(cooperativeMultiDeviceLaunch, kCooperativeMultiDeviceLaunch)                   \
    SAME(size_t, sharedMemPerBlockOptin, )                                              \
    SAME(int, pageableMemoryAccessUsesHostPageTables, )                                 \
    SAME(int, directManagedMemAccessFromHost, )                                         \
    SAME(int, maxBlocksPerMultiProcessor, )                                             \
    SAME(int, accessPolicyMaxWindowSize, )                                              \
    SAME(size_t, reservedSharedMemPerBlock, )                                           \
    SAME(int, hostRegisterSupported, )                                                  \
    SAME(int, sparseCudaArraySupported, )                                               \
    SAME(int, hostRegisterReadOnlySupported, )                                          \
    SAME(int, timelineSemaphoreInteropSupported, )                                      \
    SAME(int, memoryPoolsSupported, )                                                   \
    SAME(int, gpuDirectRDMASupported, )                                                 \
    SAME(unsigned, gpuDirectRDMAFlushWritesOptions, )                                   \
    SAME(int, gpuDirectRDMAWritesOrdering, )                                            \
    SAME(unsigned, memoryPoolSupportedHandleTypes, )                                    \
    SAME(int, deferredMappingCudaArraySupported, )                                      \
    SAME(int, ipcEventSupported, )                                                      \
    SAME(int, clusterLaunch, )                                                          \
    SAME(int, unifiedFunctionPointers, )

struct DeviceProperties {
#define RANKSCOPE_SAME(type, name, dimensions) type name dimensions;
#define RANKSCOPE_GONE(name, attribute) int name;
    RANKSCOPE_PROPERTIES_12(RANKSCOPE_SAME, RANKSCOPE_GONE)
#undef RANKSCOPE_SAME
#undef RANKSCOPE_GONE
    int reserved[63];
};
// As CUDA 12.8's header lays them out.
static_assert(sizeof(DeviceProperties) == 1032 && offsetof(DeviceProperties, multiProcessorCount) == 388 &&
              offsetof(DeviceProperties, memoryBusWidth) == 612 &&
              offsetof(DeviceProperties, hostRegisterSupported) == 728);

/// What `newer` says of `device`, for a program that knows CUDA 12's fields.
inline DeviceProperties olderProperties(const cudaDeviceProp& newer, int device) {
    DeviceProperties older{};
#define RANKSCOPE_SAME(type, name, dimensions)             \
    static_assert(sizeof older.name == sizeof newer.name); \
    std::memcpy(&older.name, &newer.name, sizeof older.name);
#define RANKSCOPE_GONE(name, attribute) cudaDeviceGetAttribute(&older.name, attribute, device);
    RANKSCOPE_PROPERTIES_12(RANKSCOPE_SAME, RANKSCOPE_GONE)
#undef RANKSCOPE_SAME
#undef RANKSCOPE_GONE
    return older;
}

}  // namespace rankscope::vgpu::cuda12

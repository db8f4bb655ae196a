// SPDX-License-Identifier: Apache-2.0
// What programs built for CUDA 12 call with other arguments than those built for CUDA 13, or under another name. All
// else is passed on as it is (symbols/cudart12.txt).
#include <cuda_runtime_api.h>

#include <cstring>

#include "reference/vgpu/cuda12/device_properties.h"

using rankscope::vgpu::cuda12::DeviceProperties;

/// `alias` is the runtime's own function: its name alone would be this library's.
#define RANKSCOPE_NEWER(result, alias, name, parameters)  \
    result alias parameters asm("rankscope_newer_" name); \
    asm(".symver rankscope_newer_" name ", " name "@libcudart.so.13")
/// Defines the function that is exported as `name`.
#define RANKSCOPE_OLDER(alias, name, parameters) \
    cudaError_t alias parameters asm(name);      \
    cudaError_t alias parameters

namespace {

constexpr int kVersion = 12080;  // CUDA 12.8, whose functions symbols/cudart12.txt lists

/// As CUDA 12 declares it: CUDA 13 writes reserved bytes behind it.
struct PointerAttributes {
    cudaMemoryType type;
    int device;
    void* devicePointer;
    void* hostPointer;
};
static_assert(sizeof(PointerAttributes) == offsetof(cudaPointerAttributes, reserved));

}  // namespace

extern "C" {

RANKSCOPE_NEWER(cudaError_t, newerProperties, "cudaGetDeviceProperties", (cudaDeviceProp*, int));
RANKSCOPE_NEWER(cudaError_t, newerPointer, "cudaPointerGetAttributes", (cudaPointerAttributes*, const void*));
RANKSCOPE_NEWER(cudaError_t, newerVersion, "cudaRuntimeGetVersion", (int*));
RANKSCOPE_NEWER(cudaError_t, newerCapture, "cudaStreamGetCaptureInfo",
                (cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                 const cudaGraphEdgeData**, size_t*));
RANKSCOPE_NEWER(cudaError_t, newerCapturePtsz, "cudaStreamGetCaptureInfo_ptsz",
                (cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*, const cudaGraphNode_t**,
                 const cudaGraphEdgeData**, size_t*));
RANKSCOPE_NEWER(cudaError_t, newerUpdate, "cudaStreamUpdateCaptureDependencies",
                (cudaStream_t, cudaGraphNode_t*, const cudaGraphEdgeData*, size_t, unsigned));
RANKSCOPE_NEWER(cudaError_t, newerAddNode, "cudaGraphAddNode",
                (cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t,
                 cudaGraphNodeParams*));
RANKSCOPE_NEWER(cudaError_t, newerDependencies, "cudaGraphNodeGetDependencies",
                (cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*));
RANKSCOPE_NEWER(cudaError_t, newerElapsed, "cudaEventElapsedTime", (float*, cudaEvent_t, cudaEvent_t));

RANKSCOPE_OLDER(runtimeVersion, "cudaRuntimeGetVersion", (int* version)) {
    const cudaError_t error = newerVersion(version);
    if (error == cudaSuccess) *version = kVersion;
    return error;
}
RANKSCOPE_OLDER(properties12, "cudaGetDeviceProperties_v2", (DeviceProperties * properties, int device)) {
    cudaDeviceProp newer;
    const cudaError_t error = newerProperties(properties ? &newer : nullptr, device);
    if (error == cudaSuccess) *properties = rankscope::vgpu::cuda12::olderProperties(newer, device);
    return error;
}
/// By this name programs built for CUDA 11 ask, whose fields are the first of CUDA 12's.
RANKSCOPE_OLDER(properties11, "cudaGetDeviceProperties", (void* properties, int device)) {
    DeviceProperties all;
    const cudaError_t error = properties12(properties ? &all : nullptr, device);
    if (error == cudaSuccess) std::memcpy(properties, &all, offsetof(DeviceProperties, hostRegisterSupported));
    return error;
}
RANKSCOPE_OLDER(pointerAttributes, "cudaPointerGetAttributes", (PointerAttributes * attributes, const void* pointer)) {
    cudaPointerAttributes newer;
    const cudaError_t error = newerPointer(attributes ? &newer : nullptr, pointer);
    if (error == cudaSuccess) std::memcpy(attributes, &newer, sizeof *attributes);
    return error;
}

RANKSCOPE_OLDER(captureInfo10, "cudaStreamGetCaptureInfo",
                (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id)) {
    return newerCapture(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
RANKSCOPE_OLDER(captureInfo11, "cudaStreamGetCaptureInfo_v2",
                (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                 const cudaGraphNode_t** nodes, size_t* count)) {
    return newerCapture(stream, status, id, graph, nodes, nullptr, count);
}
RANKSCOPE_OLDER(captureInfo12, "cudaStreamGetCaptureInfo_v3",
                (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                 const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges, size_t* count)) {
    return newerCapture(stream, status, id, graph, nodes, edges, count);
}
RANKSCOPE_OLDER(captureInfo10Ptsz, "cudaStreamGetCaptureInfo_ptsz",
                (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id)) {
    return newerCapturePtsz(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
RANKSCOPE_OLDER(captureInfo11Ptsz, "cudaStreamGetCaptureInfo_v2_ptsz",
                (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                 const cudaGraphNode_t** nodes, size_t* count)) {
    return newerCapturePtsz(stream, status, id, graph, nodes, nullptr, count);
}
RANKSCOPE_OLDER(captureInfo12Ptsz, "cudaStreamGetCaptureInfo_v3_ptsz",
                (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t* graph,
                 const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges, size_t* count)) {
    return newerCapturePtsz(stream, status, id, graph, nodes, edges, count);
}
RANKSCOPE_OLDER(updateCapture11, "cudaStreamUpdateCaptureDependencies",
                (cudaStream_t stream, cudaGraphNode_t* nodes, size_t count, unsigned flags)) {
    return newerUpdate(stream, nodes, nullptr, count, flags);
}
RANKSCOPE_OLDER(updateCapture12, "cudaStreamUpdateCaptureDependencies_v2",
                (cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData* edges, size_t count,
                 unsigned flags)) {
    return newerUpdate(stream, nodes, edges, count, flags);
}

RANKSCOPE_OLDER(addNode, "cudaGraphAddNode",
                (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before, size_t count,
                 cudaGraphNodeParams* parameters)) {
    return newerAddNode(node, graph, before, nullptr, count, parameters);
}
RANKSCOPE_OLDER(addNodeWithEdges, "cudaGraphAddNode_v2",
                (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* before,
                 const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters)) {
    return newerAddNode(node, graph, before, edges, count, parameters);
}
RANKSCOPE_OLDER(dependencies, "cudaGraphNodeGetDependencies",
                (cudaGraphNode_t node, cudaGraphNode_t* before, size_t* count)) {
    return newerDependencies(node, before, nullptr, count);
}
RANKSCOPE_OLDER(dependenciesWithEdges, "cudaGraphNodeGetDependencies_v2",
                (cudaGraphNode_t node, cudaGraphNode_t* before, cudaGraphEdgeData* edges, size_t* count)) {
    return newerDependencies(node, before, edges, count);
}
RANKSCOPE_OLDER(elapsed, "cudaEventElapsedTime_v2", (float* ms, cudaEvent_t start, cudaEvent_t end)) {
    return newerElapsed(ms, start, end);
}

}  // extern "C"

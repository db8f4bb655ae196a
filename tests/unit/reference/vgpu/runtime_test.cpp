// SPDX-License-Identifier: Apache-2.0
// What frameworks ask of the runtime, CUPTI and NVML beyond launches and copies.
#include <cupti.h>

#include "own_job.h"
#include "reference/vgpu/device/kernel_family.h"

extern "C" {
int nvmlInit_v2(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, void** device);
int nvmlDeviceGetComputeRunningProcesses(void* device, uint32_t* count, void* infos);
int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, uint32_t link, uint32_t* type);
}

namespace {

class Runtime : public OwnJob {
  protected:
    static uint64_t numberOf(cudaMemPool_t pool, cudaMemPoolAttr which) {
        uint64_t value = ~uint64_t{0};
        EXPECT_EQ(cudaMemPoolGetAttribute(pool, which, &value), cudaSuccess);
        return value;
    }
};

TEST_F(Runtime, APoolCountsWhatIsTakenFromIt) {
    cudaMemPool_t pool = nullptr;
    ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
    uint64_t threshold = 123456;
    ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), cudaSuccess);
    EXPECT_EQ(numberOf(pool, cudaMemPoolAttrReleaseThreshold), 123456u);
    void* pointer = nullptr;
    ASSERT_EQ(cudaMallocAsync(&pointer, 4096, nullptr), cudaSuccess);
    EXPECT_EQ(numberOf(pool, cudaMemPoolAttrUsedMemCurrent), 4096u);
    ASSERT_EQ(cudaFreeAsync(pointer, nullptr), cudaSuccess);
    EXPECT_EQ(numberOf(pool, cudaMemPoolAttrUsedMemCurrent), 0u);
    EXPECT_EQ(numberOf(pool, cudaMemPoolAttrUsedMemHigh), 4096u);
    uint64_t zero = 0;
    ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero), cudaSuccess);
    EXPECT_EQ(numberOf(pool, cudaMemPoolAttrUsedMemHigh), 0u);
}

TEST_F(Runtime, APoolOfTheProgramsOwnServesUntilItIsDestroyed) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool = nullptr, current = nullptr, first = nullptr;
    ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
    cudaDeviceGetDefaultMemPool(&first, 0);
    void* pointer = nullptr;
    ASSERT_EQ(cudaMallocFromPoolAsync(&pointer, 512, pool, nullptr), cudaSuccess);
    EXPECT_EQ(numberOf(pool, cudaMemPoolAttrUsedMemCurrent), 512u);
    EXPECT_EQ(numberOf(first, cudaMemPoolAttrUsedMemCurrent), 0u);
    ASSERT_EQ(cudaDeviceSetMemPool(0, pool), cudaSuccess);
    cudaDeviceGetMemPool(&current, 0);
    EXPECT_EQ(current, pool);
    ASSERT_EQ(cudaMemPoolDestroy(pool), cudaSuccess);
    cudaDeviceGetMemPool(&current, 0);
    EXPECT_EQ(current, first);
    EXPECT_EQ(cudaMemPoolDestroy(first), cudaErrorInvalidValue);
}

TEST_F(Runtime, AStreamThatCapturesTellsItsGraphAndWhatComesNextDependsOn) {
    cudaStream_t stream;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    cudaGraph_t graph = nullptr, ended = nullptr;
    const cudaGraphNode_t* dependencies = nullptr;
    size_t count = 9;
    ASSERT_EQ(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, nullptr, &count), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(count, 0u);
    void* pointer = nullptr;
    cudaMalloc(&pointer, 64);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
    cudaMemsetAsync(pointer, 0, 64, stream);
    cudaMemsetAsync(pointer, 1, 64, stream);
    ASSERT_EQ(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &dependencies, nullptr, &count), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    ASSERT_EQ(count, 1u);
    const cudaGraphNode_t last = dependencies[0];
    ASSERT_EQ(cudaStreamEndCapture(stream, &ended), cudaSuccess);
    EXPECT_EQ(ended, graph);
    cudaGraphNode_t nodes[2] = {}, before[2] = {};
    count = 2;
    ASSERT_EQ(cudaGraphGetNodes(ended, nodes, &count), cudaSuccess);
    EXPECT_EQ(nodes[1], last);
    ASSERT_EQ(cudaGraphNodeGetDependencies(last, before, nullptr, &count), cudaSuccess);
    ASSERT_EQ(count, 1u);
    EXPECT_EQ(before[0], nodes[0]);
}

TEST_F(Runtime, AnObjectLivesAsLongAsItsGraph) {
    static int destroyed = 0;
    destroyed = 0;
    cudaUserObject_t object;
    const auto destroy = [](void* pointer) { destroyed += *static_cast<int*>(pointer); };
    int five = 5;
    ASSERT_EQ(cudaUserObjectCreate(&object, &five, destroy, 1, cudaUserObjectNoDestructorSync), cudaSuccess);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamCreate(&stream);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove), cudaSuccess);
    EXPECT_EQ(cudaUserObjectRelease(object, 2), cudaErrorInvalidValue);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(destroyed, 0);  // what was made of the graph has it still
    ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    EXPECT_EQ(destroyed, 5);
}

TEST_F(Runtime, ACallbackComesInTheOrderOfTheStream) {
    static int value = 0;
    int seen = -1;
    void* pointer = &value;
    cudaMemcpyAsync(pointer, "\7\0\0", 4, cudaMemcpyHostToHost, nullptr);
    ASSERT_EQ(cudaStreamAddCallback(
                  nullptr, [](cudaStream_t, cudaError_t, void* data) { *static_cast<int*>(data) = value; }, &seen, 0),
              cudaSuccess);
    cudaDeviceSynchronize();
    EXPECT_EQ(seen, 7);
}

TEST_F(Runtime, ADeviceIsAnA100WhereNoScenarioSaysOtherwise) {
    cudaDeviceProp properties;
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    EXPECT_EQ(properties.major, 8);
    EXPECT_EQ(properties.minor, 0);
    int shared = 0;
    cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    EXPECT_EQ(shared, 163 * 1024);
}

TEST_F(Runtime, TheNinthDeviceIsCudasOwnError) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaSetDevice(8), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaSetDevice(8), cudaErrorInvalidDevice);
    const std::string told = testing::internal::GetCapturedStderr();
    const std::string said = "asks for device 8 of a machine that has 8";
    EXPECT_NE(told.find(said), std::string::npos) << told;
    EXPECT_EQ(told.find(said), told.rfind(said));  // once
    EXPECT_NE(told.find("\"ranks_per_node\": 9"), std::string::npos);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(CallbackNames, AreThoseOfCuptisHeaders) {
    const char* name = nullptr;
    ASSERT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, &name),
              CUPTI_SUCCESS);
    EXPECT_STREQ(name, "cudaMalloc_v3020");
    ASSERT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &name),
              CUPTI_SUCCESS);
    EXPECT_STREQ(name, "cuLaunchKernel");
    EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 99999, &name), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_F(Runtime, NvmlTellsWhatThisProcessHoldsOfADevice) {
    struct {
        uint32_t pid;
        uint64_t usedBytes;
    } info{};
    void* device = nullptr;
    uint32_t count = 1, type = 0;
    ASSERT_EQ(nvmlInit_v2(), 0);
    ASSERT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0000:06:00.0", &device), 0);
    ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses(device, &count, &info), 0);
    EXPECT_EQ(count, 0u);
    void* pointer = nullptr;
    cudaSetDevice(5);
    ASSERT_EQ(cudaMalloc(&pointer, 1 << 20), cudaSuccess);
    cudaSetDevice(0);
    count = 1;
    ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses(device, &count, &info), 0);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(info.pid, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(info.usedBytes, uint64_t{1} << 20);
    ASSERT_EQ(nvmlDeviceGetNvLinkRemoteDeviceType(device, 0, &type), 0);
    EXPECT_EQ(type, 2u);  // a switch
}

TEST(KernelFamily, AnElementwiseKernelMovesItsTensorsForEveryElement) {
    using rankscope::vgpu::kernelFamily;
    const auto add = kernelFamily(
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_"
        "addIN3c108BFloat16EEESt5arrayIPcLm3EELb0EEEviT0_"
        "T1_");
    ASSERT_TRUE(add);
    EXPECT_TRUE(add->countsElements);
    EXPECT_DOUBLE_EQ(add->bytesPerElement, 6);
    const auto fill = kernelFamily(
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EELb0EEEviT0_T1_");
    ASSERT_TRUE(fill);
    EXPECT_DOUBLE_EQ(fill->bytesPerElement, 4);
    EXPECT_TRUE(kernelFamily("triton_poi_fused_gelu_0"));
    EXPECT_FALSE(kernelFamily("_ZN2at6native12flash_kernelE"));  // it computes
    EXPECT_FALSE(kernelFamily("_Z9my_kernelPf"));
}

}  // namespace

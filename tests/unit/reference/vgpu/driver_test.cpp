// SPDX-License-Identifier: Apache-2.0
// The driver's API: entry points, virtual memory management, modules.
#include <cuda.h>

#include <cstring>

#include "own_job.h"

namespace {

constexpr size_t kMiB = 1 << 20;

class Driver : public OwnJob {
  protected:
    static CUmemAllocationProp onDevice(int device) {
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = device;
        return properties;
    }
    static size_t freeBytes() {
        size_t free = 0, total = 0;
        cudaMemGetInfo(&free, &total);
        return free;
    }
};

TEST_F(Driver, AnEntryPointIsTheFunctionAndAnUnknownOneIsNotFound) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuMemMap", &function, 12000, cudaEnableDefault, &result), cudaSuccess);
    EXPECT_EQ(function, reinterpret_cast<void*>(&cuMemMap));
    EXPECT_EQ(result, cudaDriverEntryPointSuccess);
    ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuGreenCtxCreate", &function, 12080, cudaEnableDefault, &result),
              cudaSuccess);
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(result, cudaDriverEntryPointSymbolNotFound);
}

TEST_F(Driver, TheContextIsThatOfTheRuntimesDevice) {
    CUcontext context = nullptr, other = nullptr;
    ASSERT_EQ(cudaSetDevice(3), cudaSuccess);
    ASSERT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 3), CUDA_SUCCESS);
    EXPECT_EQ(context, other);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxPushCurrent(other), CUDA_SUCCESS);
    int device = -1;
    cudaGetDevice(&device);
    EXPECT_EQ(device, 1);
    ASSERT_EQ(cuCtxPopCurrent(&other), CUDA_SUCCESS);
    cudaGetDevice(&device);
    EXPECT_EQ(device, 3);
    EXPECT_EQ(cuCtxPopCurrent(&other), CUDA_ERROR_INVALID_CONTEXT);
    cudaSetDevice(0);
}

TEST_F(Driver, MappedMemoryCountsHoldsWhatIsWrittenAndGoesWithItsLastHolder) {
    const size_t before = freeBytes();
    const CUmemAllocationProp properties = onDevice(0);
    CUdeviceptr address = 0;
    CUmemGenericAllocationHandle first = 0, second = 0;
    ASSERT_EQ(cuMemAddressReserve(&address, 8 * kMiB, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(freeBytes(), before);  // addresses are free
    ASSERT_EQ(cuMemCreate(&first, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemCreate(&second, 4 * kMiB, &properties, 0), CUDA_SUCCESS);
    EXPECT_EQ(freeBytes(), before - 6 * kMiB);
    ASSERT_EQ(cuMemMap(address, 2 * kMiB, 0, first, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(address, 2 * kMiB, 0, first, 0), CUDA_ERROR_INVALID_VALUE);  // something is there
    ASSERT_EQ(cuMemMap(address + 2 * kMiB, 4 * kMiB, 0, second, 0), CUDA_SUCCESS);
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(cuMemSetAccess(address, 6 * kMiB, &access, 1), CUDA_SUCCESS);
    EXPECT_EQ(cuMemSetAccess(address, 8 * kMiB, &access, 1), CUDA_ERROR_INVALID_VALUE);  // not all of it is mapped

    int value = 7, read = 0;
    ASSERT_EQ(cudaMemcpy(reinterpret_cast<void*>(address), &value, sizeof value, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(&read, reinterpret_cast<void*>(address), sizeof read, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(read, 7);
    CUdeviceptr base = 0;
    size_t bytes = 0;
    ASSERT_EQ(cuMemGetAddressRange(&base, &bytes, address + 3 * kMiB), CUDA_SUCCESS);
    EXPECT_EQ(base, address + 2 * kMiB);
    EXPECT_EQ(bytes, 4 * kMiB);

    EXPECT_EQ(cuMemRelease(first), CUDA_SUCCESS);
    EXPECT_EQ(freeBytes(), before - 6 * kMiB);                           // its mapping holds it
    EXPECT_EQ(cuMemUnmap(address, 4 * kMiB), CUDA_ERROR_INVALID_VALUE);  // half of a mapping
    EXPECT_EQ(cuMemUnmap(address, 6 * kMiB), CUDA_SUCCESS);
    EXPECT_EQ(freeBytes(), before - 4 * kMiB);
    EXPECT_EQ(cuMemRelease(second), CUDA_SUCCESS);
    EXPECT_EQ(freeBytes(), before);
    EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, address), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(cuMemAddressFree(address, 8 * kMiB), CUDA_SUCCESS);
}

TEST_F(Driver, MoreMemoryThanTheDeviceHasIsNotCreated) {
    const CUmemAllocationProp properties = onDevice(0);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, size_t{100} << 30, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    void* pointer = nullptr;
    EXPECT_EQ(cudaMalloc(&pointer, size_t{100} << 30), cudaErrorMemoryAllocation);
}

TEST_F(Driver, MemoryOfOtherProcessesIsNotSupported) {
    CUmemAllocationProp properties = onDevice(0);
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, 2 * kMiB, &properties, 0), CUDA_ERROR_NOT_SUPPORTED);
    void* pointer = nullptr;
    cudaIpcMemHandle_t ipc;
    ASSERT_EQ(cudaMalloc(&pointer, 64), cudaSuccess);
    EXPECT_EQ(cudaIpcGetMemHandle(&ipc, pointer), cudaErrorNotSupported);
}

TEST_F(Driver, AModuleHasTheKernelsOfItsTextAndTheyRunInStreams) {
    const char* ptx = ".version 8.0\n.target sm_80\n.visible .entry scale(\n.param .u64 p) { ret; }\n";
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, "neither text of PTX nor a binary, but long enough to be looked at"),
              CUDA_ERROR_INVALID_IMAGE);
    ASSERT_EQ(cuModuleLoadData(&module, ptx), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "scal"), CUDA_ERROR_NOT_FOUND);
    testing::internal::CaptureStderr();
    ASSERT_EQ(cuModuleGetFunction(&function, module, "scale"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&function, module, "scale"), CUDA_SUCCESS);
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_NE(told.find("kernels compiled at run time (the first: scale) are not executed"), std::string::npos);
    EXPECT_NE(told.find("TORCH_COMPILE_DISABLE=1"), std::string::npos) << told;
    EXPECT_EQ(told.find("scale"), told.rfind("scale"));  // once
    const double time = microseconds([&] {
        EXPECT_EQ(cuLaunchKernel(function, 1000, 1, 1, 128, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
    });
    EXPECT_NEAR(time, 3 + 1000 * 0.02, 0.01);  // by its grid
    EXPECT_EQ(cuLaunchKernel(function, 0, 1, 1, 128, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Driver, NumbersAreWrittenInTheOrderOfTheStream) {
    void* pointer = nullptr;
    ASSERT_EQ(cudaMalloc(&pointer, 64), cudaSuccess);
    const auto address = reinterpret_cast<CUdeviceptr>(pointer);
    ASSERT_EQ(cuMemsetD32Async(address, 0x01020304, 16, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWriteValue32(nullptr, address + 8, 99, 0), CUDA_SUCCESS);
    uint32_t read[16];
    ASSERT_EQ(cudaMemcpy(read, pointer, sizeof read, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(read[0], 0x01020304u);
    EXPECT_EQ(read[2], 99u);
    EXPECT_EQ(read[15], 0x01020304u);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include "injector/cupti/recorded_calls.h"

#include <gtest/gtest.h>

using rankscope::injector::cupti::isRecordedCall;

TEST(RecordedCalls, AreThoseThatGiveWorkWaitOrAllocate) {
    for (const char* name : {"cudaLaunchKernel_v7000",
                             "__cudaLaunchKernel_ptsz_v13000",
                             "cuLaunchKernelEx",
                             "cudaGraphLaunch_v10000",
                             "cudaMemcpyAsync_ptsz_v7000",
                             "cuMemcpyHtoDAsync_v2",
                             "cudaMemsetAsync_v3020",
                             "cudaEventRecord_v3020",
                             "cuStreamWaitEvent_ptsz",
                             "cudaStreamSynchronize_v3020",
                             "cuCtxSynchronize",
                             "cudaMalloc_v3020",
                             "cuMemAlloc_v2",
                             "cudaMallocAsync_v11020",
                             "cudaFree_v3020",
                             "cuMemFreeAsync",
                             "cudaHostAlloc_v3020",
                             "cuMemCreate",
                             "cuMemRelease",
                             "cuModuleLoadData",
                             "cuLibraryLoadData",
                             "cudaGraphInstantiate_v12000"})
        EXPECT_TRUE(isRecordedCall(name)) << name;
}

TEST(RecordedCalls, QuestionsAreNotWorthTheirPrice) {
    for (const char* name :
         {"cudaGetDevice_v3020", "cudaSetDevice_v3020", "cudaGetLastError_v3020", "cudaEventQuery_v3020",
          "cudaStreamIsCapturing_v10000", "cuKernelGetName", "cuCtxGetCurrent", "cudaFuncGetAttributes_v3020",
          "cudaMemGetInfo_v3020", "cuMemGetAllocationGranularity", "cudaGraphAddMemcpyNode_v10000",
          "cudaEventCreateWithFlags_v3020", "cudaOccupancyMaxActiveClusters_v11070", ""})
        EXPECT_FALSE(isRecordedCall(name)) << name;
}

// SPDX-License-Identifier: Apache-2.0
// cupti_client first|second: a profiler of the user's that counts kernels by CUPTI, subscribed before or after the
// first GPU call.
#include <cuda_runtime.h>
#include <cupti.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<int> kernels{0};
std::atomic<int> launches{0};

void CUPTIAPI onApi(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
    const auto* call = static_cast<const CUpti_CallbackData*>(data);
    if (domain == CUPTI_CB_DOMAIN_RUNTIME_API && call->callbackSite == CUPTI_API_ENTER &&
        std::strstr(call->functionName, "cudaMemset") != nullptr)
        ++launches;
}

void CUPTIAPI onRequest(uint8_t** buffer, size_t* size, size_t* maxRecords) {
    *size = 1 << 20;
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
    *maxRecords = 0;
}

void CUPTIAPI onComplete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t validSize) {
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, validSize, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) ++kernels;
    std::free(buffer);
}

}  // namespace

int main(int, char** argv) {
    if (std::strcmp(argv[1], "second") == 0) cudaFree(nullptr);
    CUpti_SubscriberHandle subscriber = nullptr;
    std::printf("subscribe %d\n", static_cast<int>(cuptiSubscribe(&subscriber, onApi, nullptr)));
    std::printf("domain %d\n", static_cast<int>(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API)));
    std::printf("callbacks %d\n", static_cast<int>(cuptiActivityRegisterCallbacks(onRequest, onComplete)));
    std::printf("enable %d\n", static_cast<int>(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET)));
    void* memory = nullptr;
    cudaMalloc(&memory, 1 << 20);
    for (int i = 0; i < 25; ++i) cudaMemsetAsync(memory, 0, 1 << 20, nullptr);
    cudaDeviceSynchronize();
    std::printf("flush %d\n", static_cast<int>(cuptiActivityFlushAll(0)));
    std::printf("records %d, calls %d\n", kernels.load(), launches.load());
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET);
    cuptiUnsubscribe(subscriber);
}

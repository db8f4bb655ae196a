// SPDX-License-Identifier: Apache-2.0
#include "injector/cupti/cupti_api.h"

#include <dlfcn.h>

#include "injector/real_symbol.h"

namespace rankscope::injector::cupti {
namespace {

/// Newest first; the process's own CUDA runtime decides when it is loaded.
struct Library {
    const char* runtime;
    const char* cupti;
};
constexpr Library kLibraries[] = {
    {"libcudart.so.13", "libcupti.so.13"},
    {"libcudart.so.12", "libcupti.so.12"},
    {"libcudart.so.11", "libcupti.so.11.8"},
};
constexpr const char* kFallbacks[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                      "/usr/local/cuda/lib64/libcupti.so",
                                      "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};

void* g_opened = nullptr;

void open() noexcept {
    if (g_opened != nullptr) return;
    // Without a driver CUPTI can do nothing, and loading it would bring its own exit handlers into the job.
    if (findInLoaded("libcuda.so", "cuInit") == nullptr && dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr)
        return;
    for (const Library& library : kLibraries)
        if (g_opened == nullptr && findInLoaded(library.runtime, "cudaRuntimeGetVersion") != nullptr)
            g_opened = dlopen(library.cupti, RTLD_LAZY | RTLD_LOCAL);
    for (const char* name : kFallbacks)
        if (g_opened == nullptr) g_opened = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    dlerror();
}

/// The global scope comes first (behind our own hook): the virtual GPUs answer there for all three libraries. Then what
/// was loaded privately; there, too, the virtual GPUs go by the name of the first library that was asked for.
void* findLoaded(const char* name) noexcept {
    void* symbol = dlsym(RTLD_NEXT, name);
    if (symbol == nullptr) symbol = findInLoaded("libcupti.so", name);
    return symbol != nullptr ? symbol : findInLoaded("libcudart.so", name);
}

template <typename Function>
void fill(Function& function, const char* name) noexcept {
    void* symbol = findLoaded(name);
    if (symbol == nullptr && g_opened != nullptr) symbol = dlsym(g_opened, name);
    function = reinterpret_cast<Function>(symbol);
}

}  // namespace

bool loadApi(Api& api) noexcept {
    if (findLoaded("cuptiGetVersion") == nullptr) open();
    fill(api.getVersion, "cuptiGetVersion");
    fill(api.getTimestamp, "cuptiGetTimestamp");
    fill(api.getResultString, "cuptiGetResultString");
    fill(api.activityEnable, "cuptiActivityEnable");
    fill(api.activityDisable, "cuptiActivityDisable");
    fill(api.activityRegisterCallbacks, "cuptiActivityRegisterCallbacks");
    fill(api.activityGetNextRecord, "cuptiActivityGetNextRecord");
    fill(api.activityFlushAll, "cuptiActivityFlushAll");
    fill(api.activityGetNumDroppedRecords, "cuptiActivityGetNumDroppedRecords");
    fill(api.activityPushExternalCorrelationId, "cuptiActivityPushExternalCorrelationId");
    fill(api.activityPopExternalCorrelationId, "cuptiActivityPopExternalCorrelationId");
    fill(api.activityEnableRuntimeApi, "cuptiActivityEnableRuntimeApi");
    fill(api.activityEnableDriverApi, "cuptiActivityEnableDriverApi");
    fill(api.activitySetAttribute, "cuptiActivitySetAttribute");
    fill(api.setThreadIdType, "cuptiSetThreadIdType");
    fill(api.subscribe, "cuptiSubscribe");
    fill(api.subscribeV2, "cuptiSubscribe_v2");
    fill(api.unsubscribe, "cuptiUnsubscribe");
    fill(api.enableCallback, "cuptiEnableCallback");
    fill(api.getCallbackName, "cuptiGetCallbackName");
    fill(api.getStreamIdEx, "cuptiGetStreamIdEx");
    fill(api.getDeviceId, "cuptiGetDeviceId");
    fill(api.getCudaEventId, "cuptiGetCudaEventId");
    dlerror();
    return api.isComplete();
}

}  // namespace rankscope::injector::cupti

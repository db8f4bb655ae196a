// SPDX-License-Identifier: Apache-2.0
// A client of CUPTI that asks for what its environment names and only counts what comes, to be preloaded into a job:
// what it costs the job is CUPTI's own price.
//   CUPTI_CLIENT_KINDS=10,5       activity kinds, by number
//   CUPTI_CLIENT_APIS=R211,D307   calls of the runtime and of the driver, by callback id
//   CUPTI_CLIENT_CALLBACKS=R147   calls that call back, with the number of the stream that they name
//   CUPTI_CLIENT_RECORDS=20000    after so many records CUPTI is taken out of the process (cuptiFinalize)
#include <cupti.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBufferBytes = 1 << 20;
std::mutex g_mutex;
std::vector<uint8_t*> g_free;
decltype(&cuptiActivityGetNextRecord) g_nextRecord;
decltype(&cuptiFinalize) g_finalize;
std::atomic<long> g_records{0};
std::atomic<bool> g_isOver{false};

void request(uint8_t** buffer, size_t* size, size_t* maxRecords) {
    *buffer = nullptr;
    *size = kBufferBytes;
    *maxRecords = 0;
    std::lock_guard lock(g_mutex);
    if (g_free.empty()) {
        void* fresh = mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh != MAP_FAILED) *buffer = static_cast<uint8_t*>(fresh);
    } else {
        *buffer = g_free.back();
        g_free.pop_back();
    }
    if (*buffer == nullptr) *size = 0;
}

void complete(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t validSize) {
    CUpti_Activity* record = nullptr;
    while (validSize > 0 && g_nextRecord(buffer, validSize, &record) == CUPTI_SUCCESS) ++g_records;
    std::memset(buffer, 0, size);
    std::lock_guard lock(g_mutex);
    g_free.push_back(buffer);
}

template <typename Function>
Function function(void* library, const char* name) {
    void* found = dlsym(library, name);
    if (found == nullptr) {
        std::fprintf(stderr, "cupti_client: no %s\n", name);
        std::_Exit(3);
    }
    return reinterpret_cast<Function>(found);
}

void check(CUptiResult result, const char* what) {
    if (result == CUPTI_SUCCESS) return;
    std::fprintf(stderr, "cupti_client: %s: error %d\n", what, static_cast<int>(result));
    std::_Exit(3);
}

decltype(&cuptiGetStreamIdEx) g_streamId;
decltype(&cuptiGetDeviceId) g_deviceId;

/// What a profiler does that wants to know the handles of waits: the stream's number is looked up.
void onCall(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (call.callbackSite == CUPTI_API_EXIT || domain != CUPTI_CB_DOMAIN_RUNTIME_API ||
        id != CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020)
        return;
    const auto& wait = *static_cast<const cudaStreamWaitEvent_v3020_params*>(call.functionParams);
    uint32_t stream = 0, device = 0;
    check(g_streamId(call.context, wait.stream, 0, &stream), "cuptiGetStreamIdEx");
    check(g_deviceId(call.context, &device), "cuptiGetDeviceId");
}

/// Takes CUPTI out of the process as a call of the job ends, which is where CUPTI allows it.
void finalizeAtExit(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
    if (static_cast<const CUpti_CallbackData*>(data)->callbackSite != CUPTI_API_EXIT || g_isOver.exchange(true)) return;
    const CUptiResult result = g_finalize();
    std::fprintf(stderr, "cupti_client: finalized after %ld records: %d\n", g_records.load(), static_cast<int>(result));
}

/// Calls `take` with each word of a list with commas.
template <typename Take>
void forEachWord(const char* variable, const Take& take) {
    const char* text = std::getenv(variable);
    while (text != nullptr && *text != '\0') {
        take(text);
        text = std::strchr(text, ',');
        if (text != nullptr) ++text;
    }
}

__attribute__((constructor)) void start() {
    // Shells and launchers in front of the job must not start CUPTI.
    char path[256] = {};
    FILE* commandLine = std::fopen("/proc/self/comm", "r");
    if (commandLine == nullptr || std::fgets(path, sizeof path, commandLine) == nullptr) return;
    std::fclose(commandLine);
    if (std::strncmp(path, "python", 6) != 0) return;
    void* cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_GLOBAL);
    if (cupti == nullptr) {
        std::fprintf(stderr, "cupti_client: %s\n", dlerror());
        std::_Exit(3);
    }
    g_nextRecord = function<decltype(g_nextRecord)>(cupti, "cuptiActivityGetNextRecord");
    uint8_t zeroed = 1;
    size_t bytes = sizeof zeroed;
    check(function<decltype(&cuptiActivitySetAttribute)>(cupti, "cuptiActivitySetAttribute")(
              CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &bytes, &zeroed),
          "cuptiActivitySetAttribute");
    check(
        function<decltype(&cuptiActivityRegisterCallbacks)>(cupti, "cuptiActivityRegisterCallbacks")(request, complete),
        "cuptiActivityRegisterCallbacks");
    const auto enable = function<decltype(&cuptiActivityEnable)>(cupti, "cuptiActivityEnable");
    forEachWord("CUPTI_CLIENT_KINDS", [&](const char* word) {
        check(enable(static_cast<CUpti_ActivityKind>(std::atoi(word))), "cuptiActivityEnable");
    });
    const auto ofRuntime = function<decltype(&cuptiActivityEnableRuntimeApi)>(cupti, "cuptiActivityEnableRuntimeApi");
    const auto ofDriver = function<decltype(&cuptiActivityEnableDriverApi)>(cupti, "cuptiActivityEnableDriverApi");
    forEachWord("CUPTI_CLIENT_APIS", [&](const char* word) {
        check((*word == 'R' ? ofRuntime : ofDriver)(static_cast<CUpti_CallbackId>(std::atoi(word + 1)), 1), word);
    });
    const auto subscribe = function<decltype(&cuptiSubscribe)>(cupti, "cuptiSubscribe");
    if (std::getenv("CUPTI_CLIENT_CALLBACKS") != nullptr) {
        g_streamId = function<decltype(g_streamId)>(cupti, "cuptiGetStreamIdEx");
        g_deviceId = function<decltype(g_deviceId)>(cupti, "cuptiGetDeviceId");
        CUpti_SubscriberHandle subscriber = nullptr;
        check(subscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(onCall), nullptr), "cuptiSubscribe");
        const auto callback = function<decltype(&cuptiEnableCallback)>(cupti, "cuptiEnableCallback");
        forEachWord("CUPTI_CLIENT_CALLBACKS", [&](const char* word) {
            check(callback(1, subscriber, *word == 'R' ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API,
                           static_cast<CUpti_CallbackId>(std::atoi(word + 1))),
                  word);
        });
    }
    const auto flush = function<decltype(&cuptiActivityFlushAll)>(cupti, "cuptiActivityFlushAll");
    const char* records = std::getenv("CUPTI_CLIENT_RECORDS");
    const long most = records == nullptr ? 0 : std::atol(records);
    g_finalize = function<decltype(g_finalize)>(cupti, "cuptiFinalize");
    const auto watch = function<decltype(&cuptiEnableDomain)>(cupti, "cuptiEnableDomain");
    std::thread([flush, most, subscribe, watch] {
        while (most == 0 || g_records.load() < most) {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            flush(0);
        }
        flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        CUpti_SubscriberHandle subscriber = nullptr;
        check(subscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(finalizeAtExit), nullptr), "cuptiSubscribe");
        check(watch(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), "cuptiEnableDomain");
    }).detach();
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// The seam to CUPTI: its functions as pointers, filled at run time, so that the library needs no CUPTI to load and
// tests can bring their own. Types are our own words for what has been stable from CUPTI 11.8 (version 17) to 13.x.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::injector::cupti {

using RequestBuffer = void (*)(uint8_t** buffer, size_t* size, size_t* maxRecords);
using CompleteBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t validSize);
using Callback = void (*)(void* userData, int domain, uint32_t callbackId, const void* data);

/// CUpti_SubscriberParams of CUPTI 13.0.
struct SubscriberParams {
    size_t structSize;
    const char* subscriberName;
    char* oldSubscriberName;
    size_t oldSubscriberSize;
};

/// Members that may be null are optional.
struct Api {
    int (*getVersion)(uint32_t*) = nullptr;
    int (*getTimestamp)(uint64_t*) = nullptr;
    int (*getResultString)(int, const char**) = nullptr;
    int (*activityEnable)(int kind) = nullptr;
    int (*activityDisable)(int kind) = nullptr;
    int (*activityRegisterCallbacks)(RequestBuffer, CompleteBuffer) = nullptr;
    int (*activityGetNextRecord)(uint8_t* buffer, size_t validSize, void** record) = nullptr;
    int (*activityFlushAll)(uint32_t flags) = nullptr;
    int (*activityGetNumDroppedRecords)(void* context, uint32_t stream, size_t* dropped) = nullptr;
    int (*activityPushExternalCorrelationId)(int kind, uint64_t id) = nullptr;
    int (*activityPopExternalCorrelationId)(int kind, uint64_t* id) = nullptr;
    int (*activityEnableRuntimeApi)(uint32_t callbackId, uint8_t enable) = nullptr;                ///< optional
    int (*activityEnableDriverApi)(uint32_t callbackId, uint8_t enable) = nullptr;                 ///< optional
    int (*activitySetAttribute)(int attribute, size_t* bytes, void* value) = nullptr;              ///< optional
    int (*setThreadIdType)(int type) = nullptr;                                                    ///< optional
    int (*subscribe)(void** subscriber, Callback, void* userData) = nullptr;                       ///< optional
    int (*subscribeV2)(void** subscriber, Callback, void* userData, SubscriberParams*) = nullptr;  ///< optional, 13.0
    int (*unsubscribe)(void* subscriber) = nullptr;                                                ///< optional
    int (*enableCallback)(uint32_t enable, void* subscriber, int domain, uint32_t id) = nullptr;   ///< optional
    int (*getCallbackName)(int domain, uint32_t id, const char**) = nullptr;                       ///< optional
    int (*getStreamIdEx)(void* context, void* stream, uint8_t perThread, uint32_t*) = nullptr;     ///< optional
    int (*getDeviceId)(void* context, uint32_t*) = nullptr;                                        ///< optional
    int (*getCudaEventId)(void* event, uint32_t*) = nullptr;                                       ///< optional, 13.4

    bool isComplete() const noexcept {
        return getVersion != nullptr && activityEnable != nullptr && activityDisable != nullptr &&
               activityRegisterCallbacks != nullptr && activityGetNextRecord != nullptr &&
               activityFlushAll != nullptr && activityGetNumDroppedRecords != nullptr &&
               activityPushExternalCorrelationId != nullptr && activityPopExternalCorrelationId != nullptr;
    }
};

constexpr int kSuccess = 0;
constexpr int kMultipleSubscribers = 39;
constexpr uint32_t kFlushForced = 1;
constexpr int kExternalCorrelationCustom0 = 3;
constexpr uint32_t kOldestVersion = 17;  ///< CUDA 11.8

/// A libcupti that is loaded already, else the one of this process's CUDA version. False: there is none.
bool loadApi(Api& api) noexcept;

}  // namespace rankscope::injector::cupti

// SPDX-License-Identifier: Apache-2.0
// CUPTI's remaining entry points: clock, versions, ids, attributes.
#include <algorithm>
#include <cstring>
#include <map>

#include "reference/vgpu/cupti/callback_names.h"
#include "reference/vgpu/device/activity.h"
#include "reference/vgpu/device/context.h"
#include "reference/vgpu/device/device_ops.h"

using namespace rankscope::vgpu;

extern "C" {

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
    if (!version) return CUPTI_ERROR_INVALID_PARAMETER;
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
    if (!timestamp) return CUPTI_ERROR_INVALID_PARAMETER;
    *timestamp = static_cast<uint64_t>(LocalProcess::instance().nowStamp());
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
    if (!text) return CUPTI_ERROR_INVALID_PARAMETER;
    switch (result) {
#define RANKSCOPE_NAME(code) \
    case code:               \
        *text = #code;       \
        return CUPTI_SUCCESS;
        RANKSCOPE_NAME(CUPTI_SUCCESS)
        RANKSCOPE_NAME(CUPTI_ERROR_INVALID_PARAMETER)
        RANKSCOPE_NAME(CUPTI_ERROR_INVALID_KIND)
        RANKSCOPE_NAME(CUPTI_ERROR_MAX_LIMIT_REACHED)
        RANKSCOPE_NAME(CUPTI_ERROR_QUEUE_EMPTY)
        RANKSCOPE_NAME(CUPTI_ERROR_NOT_SUPPORTED)
        RANKSCOPE_NAME(CUPTI_ERROR_NOT_INITIALIZED)
        RANKSCOPE_NAME(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
        RANKSCOPE_NAME(CUPTI_ERROR_UNKNOWN)
#undef RANKSCOPE_NAME
        default:
            return CUPTI_ERROR_INVALID_PARAMETER;
    }
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char** name) {
    if (!name) return CUPTI_ERROR_INVALID_PARAMETER;
    const bool isRuntime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    if (!isRuntime && domain != CUPTI_CB_DOMAIN_DRIVER_API) return CUPTI_ERROR_INVALID_PARAMETER;
    const CallbackName* names = isRuntime ? kRuntimeCallbackNames : kDriverCallbackNames;
    const CallbackName* end = names + (isRuntime ? kRuntimeCallbackNameCount : kDriverCallbackNameCount);
    const CallbackName* found = std::find_if(names, end, [id](const CallbackName& entry) { return entry.id == id; });
    if (found == end) return CUPTI_ERROR_INVALID_PARAMETER;
    *name = found->name;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetErrorMessage(CUptiResult result, const char** text) {
    return cuptiGetResultString(result, text);
}
CUptiResult CUPTIAPI cuptiGetLastError(void) {
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiFinalize(void) {
    return CUPTI_SUCCESS;
}
/// Null is the calling thread's own.
static int deviceOfContext(CUcontext context) {
    if (context) return deviceOf(context);
    const ThreadClock* thread = LocalProcess::clockIfAny();
    return thread ? thread->device : 0;
}
CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t* contextId) {
    *contextId = static_cast<uint32_t>(deviceOfContext(context)) + 1;
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t* deviceId) {
    *deviceId = static_cast<uint32_t>(deviceOfContext(context));
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext context, CUstream handle, uint8_t perThread, uint32_t* streamId) {
    LocalProcess& process = LocalProcess::instance();
    if (!streamId || !LocalProcess::clockIfAny()) return CUPTI_ERROR_INVALID_PARAMETER;
    const int device = deviceOfContext(context);
    if (device < 0) return CUPTI_ERROR_INVALID_CONTEXT;
    std::lock_guard guard(process.mutex());
    const LocalStream* stream = resolveStream(process, device, handle, perThread != 0);
    if (!stream || (context && stream->device != device)) return CUPTI_ERROR_INVALID_STREAM;
    *streamId = stream->id;
    return CUPTI_SUCCESS;
}
/// Of CUPTI 13.4 on, and in none of the headers that we build with.
CUptiResult CUPTIAPI cuptiGetCudaEventId(CUevent event, uint32_t* eventId) {
    if (!event || !eventId) return CUPTI_ERROR_INVALID_PARAMETER;
    *eventId = reinterpret_cast<const LocalEvent*>(event)->id;
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* streamId) {
    return cuptiGetStreamIdEx(context, stream, 0, streamId);
}

static std::map<CUpti_ActivityAttribute, size_t>& attributes() {
    static auto* values =
        new std::map<CUpti_ActivityAttribute, size_t>{{CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 3u << 20},
                                                      {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, 250},
                                                      {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, 3},
                                                      {CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1},
                                                      {CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 0}};
    return *values;
}
CUptiResult CUPTIAPI cuptiActivityGetAttribute(CUpti_ActivityAttribute which, size_t* bytes, void* value) {
    if (!bytes || !value) return CUPTI_ERROR_INVALID_PARAMETER;
    auto it = attributes().find(which);
    if (it == attributes().end()) return CUPTI_ERROR_INVALID_PARAMETER;
    std::memcpy(value, &it->second, std::min(*bytes, sizeof(size_t)));
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute which, size_t* bytes, void* value) {
    if (!bytes || !value) return CUPTI_ERROR_INVALID_PARAMETER;
    size_t stored = 0;
    std::memcpy(&stored, value, std::min(*bytes, sizeof(size_t)));
    attributes()[which] = stored;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t) {
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableLaunchAttributes(uint8_t) {
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableAllSyncRecords(uint8_t) {
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableHWTrace(uint8_t) {
    return CUPTI_ERROR_NOT_SUPPORTED;
}
CUptiResult CUPTIAPI cuptiActivityEnableAllocationSource(uint8_t) {
    return CUPTI_ERROR_NOT_SUPPORTED;
}
CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) {
    return CUPTI_ERROR_NOT_SUPPORTED;
}
CUptiResult CUPTIAPI cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
    *type = CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
    return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType) {
    return CUPTI_SUCCESS;
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
#include "injector/cupti/recorded_calls.h"

#include <cstring>

namespace rankscope::injector::cupti {
namespace {

constexpr const char* kRecorded[] = {
    "Launch",           "Memcpy",          "Memset",
    "Prefetch",         "BatchMemOp",      "WaitValue",
    "WriteValue",       "Synchronize",     "EventRecord",
    "WaitEvent",        "Malloc",          "MemAlloc",
    "HostAlloc",        "MemCreate",       "cudaFree",
    "MemFree",          "MemRelease",      "FreeHost",
    "MemMap",           "MemUnmap",        "MemSetAccess",
    "HostRegister",     "HostUnreg",       "IpcOpenMem",
    "ModuleLoad",       "LibraryLoad",     "LinkComplete",
    "GraphInstantiate", "GraphExecUpdate", "ProfilerStart",
    "ProfilerStop",     "RecordEvent",     "ExternalSemaphore",
    "AddCallback",      "GraphUpload",     "ArrayCreate",
    "ArrayDestroy",     "PoolTrim",        "MemTrim",
    "AttachMem",        "Discard",         "Decompress",
    "cuInit",           "CtxCreate",       "PrimaryCtxRetain",
};
/// Of calls that are named like these and only ask or describe.
constexpr const char* kNot[] = {"Attribute", "Node", "GetInfo"};

bool hasAny(const char* name, const char* const* parts, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i)
        if (std::strstr(name, parts[i]) != nullptr) return true;
    return false;
}

}  // namespace

bool isRecordedCall(const char* name) noexcept {
    return hasAny(name, kRecorded, sizeof kRecorded / sizeof *kRecorded) &&
           !hasAny(name, kNot, sizeof kNot / sizeof *kNot);
}

}  // namespace rankscope::injector::cupti

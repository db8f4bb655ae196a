// SPDX-License-Identifier: Apache-2.0
// A user's own NCCL profiler plugin, versions 3 to 5 or, with CHAINED_PROFILER_VERSION, 7 alone, that asks for groups
// and collectives, with CHAINED_PROFILER_PROXY also for what proxies do, and counts its calls.
#include "tests/unit/injector/nccl_plugin/chained_profiler.h"

#include <cstdlib>
#include <cstring>

#include "injector/nccl_plugin/profiler_abi.h"

using namespace rankscope::injector::profiler_abi;

extern "C" {
ChainedProfilerLog chainedProfilerLog;
}

namespace {

constexpr int kMost = 16;
char g_context;
char g_handles[kMost];

int opened(int version, void** context, int* mask) {
    chainedProfilerLog = {};
    chainedProfilerLog.lastVersion = version;
    *context = &g_context;
    *mask = group | coll;
    if (std::getenv("CHAINED_PROFILER_PROXY") != nullptr) *mask |= proxyOp | proxyStep;
    if (std::getenv("CHAINED_PROFILER_PHASES") != nullptr) *mask |= kernelPhase;
    return 0;
}

bool isHandle(const void* handle) {
    return handle >= g_handles && handle < g_handles + kMost;
}

template <typename Descriptor>
int start(void* context, void** handle, Descriptor* descriptor) {
    ChainedProfilerLog& log = chainedProfilerLog;
    if (context != &g_context || log.starts == kMost) return ++log.foreignHandles, 0;
    *handle = &g_handles[log.starts++];
    if (log.starts == 1) log.handleOfFirst = *handle;
    log.parentOfLast = descriptor->parent;
    if (descriptor->parent != nullptr && !isHandle(descriptor->parent)) ++log.foreignHandles;
    if (log.lastVersion >= 5 && descriptor->type == coll)
        std::memcpy(&log.groupOfLast, reinterpret_cast<const char*>(descriptor) + 104, sizeof log.groupOfLast);
    if (log.lastVersion >= 7 && descriptor->type == coll)
        std::memcpy(&log.userTag, reinterpret_cast<const char*>(descriptor) + 128, sizeof log.userTag);
    return 0;
}

int stop(void* handle) {
    isHandle(handle) ? ++chainedProfilerLog.stops : ++chainedProfilerLog.foreignHandles;
    return 0;
}

int state(void* handle, int state, void*) {
    isHandle(handle) ? ++chainedProfilerLog.states : ++chainedProfilerLog.foreignHandles;
    chainedProfilerLog.lastState = state;
    return 0;
}

int finalize(void* context) {
    context == &g_context ? ++chainedProfilerLog.finalized : ++chainedProfilerLog.foreignHandles;
    return 0;
}

}  // namespace

#ifdef CHAINED_PROFILER_VERSION
extern "C" const ProfilerV5 ncclProfiler_v7;
const ProfilerV5 ncclProfiler_v7 = {
    "user",
    [](void** context, uint64_t, int* mask, const char*, int, int, int, Logger) { return opened(7, context, mask); },
    start<DescriptorV5>,
    stop,
    state,
    finalize};
#else
extern "C" {
extern const ProfilerV3 ncclProfiler_v3;
extern const ProfilerV4 ncclProfiler_v4;
extern const ProfilerV5 ncclProfiler_v5;
const ProfilerV3 ncclProfiler_v3 = {
    "user",  [](void** context, int* mask) { return opened(3, context, mask); }, start<DescriptorV3>, stop, state,
    finalize};
const ProfilerV4 ncclProfiler_v4 = {
    "user",
    [](void** context, int* mask, const char*, uint64_t, int, int, int, Logger) { return opened(4, context, mask); },
    start<DescriptorV4>,
    stop,
    state,
    finalize};
const ProfilerV5 ncclProfiler_v5 = {
    "user",
    [](void** context, uint64_t, int* mask, const char*, int, int, int, Logger) { return opened(5, context, mask); },
    start<DescriptorV5>,
    stop,
    state,
    finalize};
}
#endif

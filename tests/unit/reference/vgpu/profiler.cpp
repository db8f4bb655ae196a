// SPDX-License-Identifier: Apache-2.0
// A profiler plugin of version 5 that asks for everything and writes what it is told to $VGPU_DUMP.plugin.<rank>, one
// line an event: "start ID TYPE PARENT TEXT", "stop ID" or "state ID STATE TIME". Handles are ids, from 1; 0 is no
// event.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "reference/vgpu/plugins/profiler_abi.h"

namespace {

using namespace rankscope::vgpu::profiler_abi;

constexpr unsigned long long kEpochNs = 1767225600000000000ull;
FILE* g_file = nullptr;
int g_rank = 0;
unsigned long g_ids = 0;

unsigned long idOf(void* handle) {
    return reinterpret_cast<unsigned long>(handle);
}

ncclResult_t init(void** context, uint64_t, int* mask, const char*, int, int, int rank, Logger) {
    *context = &g_rank;
    *mask = kGroup | kColl | kP2p | kProxyOp | kProxyStep | kKernelCh | kGroupApi | kCollApi | kP2pApi | kKernelLaunch;
    g_rank = rank;
    g_file = std::fopen((std::string(std::getenv("VGPU_DUMP")) + ".plugin." + std::to_string(rank)).c_str(), "w");
    return ncclSuccess;
}

ncclResult_t startEvent(void*, void** handle, DescriptorV5* event) {
    std::string text = "-";
    if (event->type == kColl)
        text = std::string(event->coll.func) + "/" + event->coll.algorithm + "/" + event->coll.protocol + "/" +
               std::to_string(event->coll.channels);
    if (event->type == kCollApi) text = event->collApi.func;
    if (event->type == kGroupApi) text = std::to_string(event->groupApi.groupDepth);
    if (event->type == kKernelCh) text = std::to_string(event->kernelCh.pTimer - kEpochNs);
    if (event->type == kProxyOp)
        text = std::to_string(event->proxyOp.peer) + (event->proxyOp.isSend ? "/send/" : "/receive/") +
               std::to_string(event->proxyOp.pid);
    *handle = reinterpret_cast<void*>(++g_ids);
    std::fprintf(g_file, "start %lu %d %lu %s\n", g_ids, static_cast<int>(event->type), idOf(event->parent),
                 text.c_str());
    return ncclSuccess;
}
ncclResult_t stopEvent(void* handle) {
    std::fprintf(g_file, "stop %lu\n", idOf(handle));
    return ncclSuccess;
}
ncclResult_t recordState(void* handle, int state, void* arguments) {
    std::fprintf(
        g_file, "state %lu %d %llu\n", idOf(handle), state,
        arguments ? static_cast<unsigned long long>(static_cast<StateArguments*>(arguments)->pTimer) - kEpochNs : 0);
    return ncclSuccess;
}
ncclResult_t finalize(void*) {
    std::fclose(g_file);
    return ncclSuccess;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const PluginV5 ncclProfiler_v5 = {"lines",   init,        startEvent,
                                                                            stopEvent, recordState, finalize};

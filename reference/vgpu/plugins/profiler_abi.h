// SPDX-License-Identifier: Apache-2.0
// NCCL's profiler plugin interface as a host sees it, versions 3 to 7; laid out after NCCL 2.28.9 and, version 7, 2.32
// (src/include/plugin/profiler). Only the events this library sends are spelled out; the unions are padded to their
// real size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/vgpu/engine/public_api.h"

namespace rankscope::vgpu::profiler_abi {

inline constexpr int kGroup = 1, kColl = 2, kP2p = 4, kProxyOp = 8, kProxyStep = 16, kKernelCh = 64, kNetPlugin = 128,
                     kGroupApi = 256, kCollApi = 512, kP2pApi = 1024, kKernelLaunch = 2048;
inline constexpr int kSendGpuWait = 8, kSendWait = 9, kRecvWait = 10, kRecvFlushWait = 11, kRecvGpuWait = 12,
                     kProxyOpInProgress = 19, kSendPeerWait = 20;
inline constexpr int kKernelChStop = 22, kGroupStartApiStop = 23, kGroupEndApiStart = 24;

using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

struct CollV5 {
    uint64_t seqNumber;
    const char* func;
    const void* sendBuffer;
    void* recvBuffer;
    size_t count;
    int root;
    const char* datatype;
    uint8_t channels, warps;
    const char* algorithm;
    const char* protocol;
    void* parentGroup;          ///< from version 5 on
    const char* kernelVariant;  ///< version 7 only, as all that follows
    bool symmetric;
    uint64_t userTag;  ///< of the program's call, 0: none
};

struct P2pV5 {
    const char* func;
    void* buffer;
    const char* datatype;
    size_t count;
    int peer;
    uint8_t channels;  ///< from version 4 on
    void* parentGroup;
    uint64_t userTag;  ///< version 7 only
};

struct GroupApiV5 {
    bool graphCaptured;
    int groupDepth;
};

struct CollApiV5 {
    const char* func;
    size_t count;
    const char* datatype;
    int root;
    void* stream;
    bool graphCaptured;
    uint64_t userTag;  ///< version 7 only
};

struct P2pApiV5 {
    const char* func;
    size_t count;
    const char* datatype;
    void* stream;
    bool graphCaptured;
    uint64_t userTag;  ///< version 7 only
};

struct KernelLaunchV5 {
    void* stream;
};

struct KernelChannel {
    uint8_t channelId;
    uint64_t pTimer;  ///< start, by the device's clock
};

struct ProxyOp {
    int pid;  ///< of the process whose collective it serves
    uint8_t channelId;
    int peer, steps, chunkSize, isSend;
};

struct ProxyStep {
    int step;
};

/// Of recordEventState; as large as the real union.
union StateArguments {
    uint64_t pTimer;     ///< kKernelChStop: end, by the device's clock
    size_t transferred;  ///< kSendWait and kRecvFlushWait: bytes of the step
    struct {
        size_t first;
        void* second;
    } padding;
};

struct CollV3 {
    const char* name;
    uint64_t commHash;
    CollV5 rest;  ///< same fields in the same order
};

struct P2pV3 {
    const char* name;
    uint64_t commHash;
    const char* func;
    void* buffer;
    const char* datatype;
    size_t count;
    int peer;
};

static_assert(offsetof(CollV5, kernelVariant) == 88 && offsetof(CollV5, userTag) == 104 &&
              offsetof(P2pV5, userTag) == 48 && offsetof(CollApiV5, userTag) == 48);

/// Versions 5 to 7: newer ones append to the events, and add some that this library does not send.
struct DescriptorV5 {
    uint64_t type;
    void* parent;
    int rank;
    union {
        GroupApiV5 groupApi;
        CollApiV5 collApi;
        P2pApiV5 p2pApi;
        KernelLaunchV5 kernelLaunch;
        KernelChannel kernelCh;
        ProxyOp proxyOp;
        ProxyStep proxyStep;
        CollV5 coll;
        P2pV5 p2p;
    };
};

struct DescriptorV4 {
    uint8_t type;
    void* parent;
    int rank;
    union {
        KernelChannel kernelCh;
        ProxyOp proxyOp;
        ProxyStep proxyStep;
        CollV5 coll;
        P2pV5 p2p;
    };
};

struct DescriptorV3 {
    uint8_t type;
    void* parent;
    int rank;
    union {
        ProxyOp proxyOp;
        ProxyStep proxyStep;
        CollV3 coll;
        P2pV3 p2p;
    };
};

struct PluginV5 {
    const char* name;
    ncclResult_t (*init)(void** context, uint64_t commId, int* mask, const char* commName, int nodes, int ranks,
                         int rank, Logger logger);
    ncclResult_t (*startEvent)(void* context, void** handle, DescriptorV5* descriptor);
    ncclResult_t (*stopEvent)(void* handle);
    ncclResult_t (*recordEventState)(void* handle, int state, void* args);
    ncclResult_t (*finalize)(void* context);
};

struct PluginV4 {
    const char* name;
    ncclResult_t (*init)(void** context, int* mask, const char* commName, uint64_t commHash, int nodes, int ranks,
                         int rank, Logger logger);
    ncclResult_t (*startEvent)(void* context, void** handle, DescriptorV4* descriptor);
    ncclResult_t (*stopEvent)(void* handle);
    ncclResult_t (*recordEventState)(void* handle, int state, void* args);
    ncclResult_t (*finalize)(void* context);
};

struct PluginV3 {
    const char* name;
    ncclResult_t (*init)(void** context, int* mask);
    ncclResult_t (*startEvent)(void* context, void** handle, DescriptorV3* descriptor);
    ncclResult_t (*stopEvent)(void* handle);
    ncclResult_t (*recordEventState)(void* handle, int state, void* args);
    ncclResult_t (*finalize)(void* context);
};

}  // namespace rankscope::vgpu::profiler_abi

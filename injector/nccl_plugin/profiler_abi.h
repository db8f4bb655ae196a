// SPDX-License-Identifier: Apache-2.0
// The binary interface of NCCL's profiler plugins, in our own words: only what we read. Source: the layouts that
// NCCL 2.26 (v3), 2.27 (v4), 2.28.9 (v5), 2.29 (v6) and 2.32 (v7) use in src/include/plugin/profiler/.
//
// NCCL looks a plugin up by the data symbol ncclProfiler_vN. Every function returns an ncclResult_t; we always return 0
// (success), because an error would end the job's collective. Event descriptors live on NCCL's stack; the texts in them
// are static.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::injector::profiler_abi {

enum EventType : uint64_t {
    group = 1,
    coll = 2,
    p2p = 4,
    proxyOp = 8,
    proxyStep = 16,
    proxyCtrl = 32,
    kernelChannel = 64,
    netPlugin = 128,
    groupApi = 256,
    collApi = 512,
    p2pApi = 1024,
    kernelLaunch = 2048,
    ceColl = 4096,
    ceSync = 8192,
    ceBatch = 16384,      // v6
    kernelPhase = 32768,  // v7: initial synchronisation, compute, final synchronisation of one kernel's channel
};

/// recordEventState's number for the end of a kernel's channel (v4 and newer); its argument begins with the GPU's
/// global timer.
inline constexpr int kKernelChannelStop = 22;

/// recordEventState's numbers for what the proxy thread does. Until version 3 an op has states of its own, 0 to 7,
/// whose argument begins with the bytes so far; from version 4 the argument of kSendWait and kRecvFlushWait begins with
/// the step's bytes.
inline constexpr int kLastProxyOpStateV3 = 7, kSendGpuWait = 8, kSendWait = 9, kRecvWait = 10, kRecvFlushWait = 11,
                     kRecvGpuWait = 12, kProxyOpInProgress = 19, kSendPeerWait = 20;

using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

/// v3: the hash of the communicator stands in the event.
struct CollV3 {
    const char* name;
    uint64_t commHash;
    uint64_t seqNumber;
    const char* func;
    const void* sendBuffer;
    void* recvBuffer;
    size_t count;
    int root;
    const char* dataType;
    uint8_t nMaxChannels;
    uint8_t nWarps;
    const char* algorithm;
    const char* protocol;
};

struct P2pV3 {
    const char* name;
    uint64_t commHash;
    const char* func;
    void* buffer;
    const char* dataType;
    size_t count;
    int peer;
};

/// v4 to v7; v5 appends the group, v7 the kernel's variant, whether it is symmetric, and the caller's tag, which we do
/// not read.
struct Coll {
    uint64_t seqNumber;
    const char* func;
    const void* sendBuffer;
    void* recvBuffer;
    size_t count;
    int root;
    const char* dataType;
    uint8_t nChannels;
    uint8_t nWarps;
    const char* algorithm;
    const char* protocol;
    void* parentGroup;  ///< v5 and newer
};

struct P2p {
    const char* func;
    void* buffer;
    const char* dataType;
    size_t count;
    int peer;
    uint8_t nChannels;
    void* parentGroup;  ///< v5 and newer
};

struct KernelChannel {
    uint8_t channelId;
    uint64_t startTimer;  ///< GPU global timer, ns; v4 and newer
};

/// One channel's network transfers with one peer; all versions.
struct ProxyOperation {
    int pid;  ///< of the process whose collective it serves
    uint8_t channelId;
    int peer;
    int nSteps;
    int chunkSize;
    int isSend;
};

struct ProxyStep {
    int step;
};

/// Largest member of a descriptor's union in any version we know, with room to spare: what a chained plugin may read.
inline constexpr size_t kUnionBytes = 160;

/// v3 and v4 keep the type in a byte, v5 to v7 in 64 bits; the pointer behind it starts at byte 8 either way.
struct DescriptorV3 {
    uint8_t type;
    void* parent;
    int rank;
    union {
        CollV3 coll;
        P2pV3 p2p;
        KernelChannel kernelChannel;
        ProxyOperation proxyOp;
        ProxyStep proxyStep;
    };
};

struct DescriptorV4 {
    uint8_t type;
    void* parent;
    int rank;
    union {
        Coll coll;
        P2p p2p;
        KernelChannel kernelChannel;
        ProxyOperation proxyOp;
        ProxyStep proxyStep;
    };
};

struct DescriptorV5 {
    uint64_t type;
    void* parent;
    int rank;
    union {
        Coll coll;
        P2p p2p;
        KernelChannel kernelChannel;
        ProxyOperation proxyOp;
        ProxyStep proxyStep;
    };
};

static_assert(offsetof(DescriptorV4, parent) == 8 && offsetof(DescriptorV5, parent) == 8);
static_assert(offsetof(DescriptorV3, coll) == 24 && offsetof(DescriptorV4, coll) == 24 &&
              offsetof(DescriptorV5, coll) == 24);
static_assert(offsetof(ProxyOperation, peer) == 8 && offsetof(ProxyOperation, isSend) == 20);
static_assert(offsetof(CollV3, nMaxChannels) == 72 && offsetof(CollV3, protocol) == 88);
static_assert(offsetof(Coll, nChannels) == 56 && offsetof(Coll, protocol) == 72 && sizeof(Coll) == 88);

/// The table behind ncclProfiler_v3.
struct ProfilerV3 {
    const char* name;
    int (*init)(void** context, int* activationMask);
    int (*startEvent)(void* context, void** handle, DescriptorV3* descriptor);
    int (*stopEvent)(void* handle);
    int (*recordEventState)(void* handle, int state, void* arguments);
    int (*finalize)(void* context);
};

/// The table behind ncclProfiler_v4.
struct ProfilerV4 {
    const char* name;
    int (*init)(void** context, int* activationMask, const char* commName, uint64_t commHash, int nNodes, int nRanks,
                int rank, Logger logger);
    int (*startEvent)(void* context, void** handle, DescriptorV4* descriptor);
    int (*stopEvent)(void* handle);
    int (*recordEventState)(void* handle, int state, void* arguments);
    int (*finalize)(void* context);
};

/// The table behind ncclProfiler_v5, ncclProfiler_v6 and ncclProfiler_v7: v6 only adds event types; v7, too, and fields
/// at the end of the events there were. So a plugin of an older one of them reads a newer descriptor rightly.
struct ProfilerV5 {
    const char* name;
    int (*init)(void** context, uint64_t commId, int* activationMask, const char* commName, int nNodes, int nRanks,
                int rank, Logger logger);
    int (*startEvent)(void* context, void** handle, DescriptorV5* descriptor);
    int (*stopEvent)(void* handle);
    int (*recordEventState)(void* handle, int state, void* arguments);
    int (*finalize)(void* context);
};

}  // namespace rankscope::injector::profiler_abi

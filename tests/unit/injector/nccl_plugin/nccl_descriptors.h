// SPDX-License-Identifier: Apache-2.0
// NCCL's calls into the profiler plugin, in the binary layout of each version. The descriptors are made of bytes at the
// offsets that NCCL's own headers give (plugins/profiler/example/nccl/profiler_v3.h to profiler_v7.h), not of the
// structs under test.
#pragma once

#include <cstring>

#include "injector/nccl_plugin/profiler_abi.h"

namespace rankscope::injector {
extern "C" const profiler_abi::ProfilerV3 ncclProfiler_v3;
extern "C" const profiler_abi::ProfilerV4 ncclProfiler_v4;
extern "C" const profiler_abi::ProfilerV5 ncclProfiler_v5;
extern "C" const profiler_abi::ProfilerV5 ncclProfiler_v6;
extern "C" const profiler_abi::ProfilerV5 ncclProfiler_v7;
}  // namespace rankscope::injector

namespace rankscope::injector::test {

inline constexpr uint64_t kUserTag = 0x7a67;  // of a call, v7
inline constexpr int kKernelPhase = 32768, kKernelPhaseStop = 31;
inline constexpr int kGroup = 1, kColl = 2, kP2p = 4, kProxyOp = 8, kProxyStep = 16, kKernelChannel = 64,
                     kKernelChannelStop = 22;

/// A descriptor on NCCL's stack.
class Descriptor {
  public:
    template <typename Value>
    Descriptor& put(size_t offset, Value value) {
        std::memcpy(m_bytes + offset, &value, sizeof value);
        return *this;
    }
    template <typename Value>
    Value get(size_t offset) const {
        Value value;
        std::memcpy(&value, m_bytes + offset, sizeof value);
        return value;
    }
    void* at() { return m_bytes; }

  private:
    alignas(8) unsigned char m_bytes[256] = {};
};

inline Descriptor head(int version, uint64_t type, void* parent, int rank) {
    Descriptor descriptor;
    if (version >= 5)
        descriptor.put<uint64_t>(0, type);
    else
        descriptor.put<uint8_t>(0, static_cast<uint8_t>(type));
    return descriptor.put(8, parent).put(16, rank);
}

inline Descriptor collective(int version, int rank) {
    Descriptor d = head(version, kColl, nullptr, rank);
    size_t at = 24;
    if (version == 3) {
        d.put<const char*>(24, "comm name").put<uint64_t>(32, 0xc0ffee);
        at = 40;
    }
    d.put<uint64_t>(at, 41)
        .put<const char*>(at + 8, "AllReduce")
        .put<void*>(at + 16, nullptr)
        .put<void*>(at + 24, nullptr)
        .put<size_t>(at + 32, 1000);
    d.put<int>(at + 40, 2).put<const char*>(at + 48, "ncclBfloat16").put<uint8_t>(at + 56, 16).put<uint8_t>(at + 57, 8);
    if (version >= 7) d.put<const char*>(at + 88, "LDMC").put<bool>(at + 96, true).put<uint64_t>(at + 104, kUserTag);
    return d.put<const char*>(at + 64, "RING").put<const char*>(at + 72, "LL128");
}

inline Descriptor message(int version, int rank) {
    Descriptor d = head(version, kP2p, nullptr, rank);
    size_t at = 24;
    if (version == 3) {
        d.put<const char*>(24, "comm name").put<uint64_t>(32, 0xc0ffee);
        at = 40;
    }
    d.put<const char*>(at, "Send")
        .put<void*>(at + 8, nullptr)
        .put<const char*>(at + 16, "ncclFloat32")
        .put<size_t>(at + 24, 77)
        .put<int>(at + 32, 5);
    if (version >= 4) d.put<uint8_t>(at + 36, 4);
    return d;
}

/// One version's table with its differences of types taken away.
struct Plugin {
    int version;
    int (*init)(void** context, int* mask);
    int (*startEvent)(void* context, void** handle, void* descriptor);
    int (*stopEvent)(void* handle);
    int (*recordEventState)(void* handle, int state, void* arguments);
    int (*finalize)(void* context);
};

inline const Plugin kPlugins[] = {
    {3, [](void** context, int* mask) { return ncclProfiler_v3.init(context, mask); },
     [](void* context, void** handle, void* d) {
         return ncclProfiler_v3.startEvent(context, handle, static_cast<profiler_abi::DescriptorV3*>(d));
     },
     ncclProfiler_v3.stopEvent, ncclProfiler_v3.recordEventState, ncclProfiler_v3.finalize},
    {4,
     [](void** context, int* mask) {
         return ncclProfiler_v4.init(context, mask, "comm name", 0xc0ffee, 1, 8, 3, nullptr);
     },
     [](void* context, void** handle, void* d) {
         return ncclProfiler_v4.startEvent(context, handle, static_cast<profiler_abi::DescriptorV4*>(d));
     },
     ncclProfiler_v4.stopEvent, ncclProfiler_v4.recordEventState, ncclProfiler_v4.finalize},
    {5,
     [](void** context, int* mask) {
         return ncclProfiler_v5.init(context, 0xc0ffee, mask, "comm name", 1, 8, 3, nullptr);
     },
     [](void* context, void** handle, void* d) {
         return ncclProfiler_v5.startEvent(context, handle, static_cast<profiler_abi::DescriptorV5*>(d));
     },
     ncclProfiler_v5.stopEvent, ncclProfiler_v5.recordEventState, ncclProfiler_v5.finalize},
    {6,
     [](void** context, int* mask) {
         return ncclProfiler_v6.init(context, 0xc0ffee, mask, "comm name", 1, 8, 3, nullptr);
     },
     [](void* context, void** handle, void* d) {
         return ncclProfiler_v6.startEvent(context, handle, static_cast<profiler_abi::DescriptorV5*>(d));
     },
     ncclProfiler_v6.stopEvent, ncclProfiler_v6.recordEventState, ncclProfiler_v6.finalize},
    {7,
     [](void** context, int* mask) {
         return ncclProfiler_v7.init(context, 0xc0ffee, mask, "comm name", 1, 8, 3, nullptr);
     },
     [](void* context, void** handle, void* d) {
         return ncclProfiler_v7.startEvent(context, handle, static_cast<profiler_abi::DescriptorV5*>(d));
     },
     ncclProfiler_v7.stopEvent, ncclProfiler_v7.recordEventState, ncclProfiler_v7.finalize},
};

}  // namespace rankscope::injector::test

// SPDX-License-Identifier: Apache-2.0
// Settings of one collective call, as NCCL 2.31 takes them behind its nccl*Config() functions; laid out after nccl.h
// (ncclCollConfig_v23100).
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/vgpu/engine/public_api.h"

namespace rankscope::vgpu {

struct CollConfig {
    size_t size;
    unsigned int magic, version;
    void* extensions;
    int minCtas, maxCtas, nvlsCtas, clusterSize;
    const char* algorithms;
    int mustUseAlgorithms, ctaPolicy;
    uint64_t userTag;  ///< handed to profiler plugins

    static constexpr unsigned int kMagic = 0xcafebeef;
};
static_assert(offsetof(CollConfig, userTag) == 56);

/// The settings of the call in progress on this thread. Only the tag has an effect here.
class CallSettings {
  public:
    explicit CallSettings(const CollConfig* config) : m_valid(!config || config->magic == CollConfig::kMagic) {
        if (m_valid && config) s_userTag = config->userTag;
    }
    ~CallSettings() { s_userTag = 0; }
    CallSettings(const CallSettings&) = delete;
    CallSettings& operator=(const CallSettings&) = delete;

    /// False: the program did not initialise them, which NCCL refuses.
    bool valid() const { return m_valid; }
    static uint64_t userTag() { return s_userTag; }

  private:
    bool m_valid;
    static inline thread_local uint64_t s_userTag = 0;
};

}  // namespace rankscope::vgpu

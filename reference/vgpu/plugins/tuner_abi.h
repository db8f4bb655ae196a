// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner plugin interface as a host sees it, versions 2 to 7; laid out after NCCL 2.28.9,
// version 6 after 2.30, version 7 after 2.32.6 (src/include/plugin/tuner).
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/vgpu/engine/public_api.h"

namespace rankscope::vgpu::tuner_abi {

using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);

inline constexpr int kHardwareLinks = 3, kScales = 3;

struct NvlDomains {
    int count, minRanks, maxRanks;
};

/// Volta to Blackwell; version 7 adds Rubin.
template <int kComputeCapabilities>
struct ConstantsFor {
    double baseLatencies[7][3];
    double hwLatencies[kHardwareLinks][7][3];
    double llMaxBws[kComputeCapabilities][kScales];
    double perChMaxRingLL128Bws[kComputeCapabilities][kScales];
    double perChMaxTreeLL128Bws[kComputeCapabilities][kScales];
    double perChMaxTreeBws[kComputeCapabilities][kScales];
    double perChMaxNVLSTreeBws[kComputeCapabilities][kScales];
};
using Constants = ConstantsFor<4>;
using ConstantsV7 = ConstantsFor<5>;

/// `table` is float[algorithms][protocols], though it is declared as a pointer to pointers.
struct TunerV5 {
    const char* name;
    ncclResult_t (*init)(void** context, uint64_t commId, size_t ranks, size_t nodes, Logger logger,
                         NvlDomains* domains, Constants* constants);
    ncclResult_t (*getCollInfo)(void* context, int function, size_t bytes, int pipeOps, float** table, int algorithms,
                                int protocols, int registered, int* channels);
    ncclResult_t (*finalize)(void* context);
};

/// getChunkSize may be null.
struct TunerV6 : TunerV5 {
    ncclResult_t (*getChunkSize)(void* context, int function, size_t bytes, int algorithm, int protocol, int channels,
                                 size_t* chunkBytes);
};

/// As version 6, but for what init is handed.
struct TunerV7 {
    const char* name;
    ncclResult_t (*init)(void** context, uint64_t commId, size_t ranks, size_t nodes, Logger logger,
                         NvlDomains* domains, ConstantsV7* constants);
    ncclResult_t (*getCollInfo)(void* context, int function, size_t bytes, int pipeOps, float** table, int algorithms,
                                int protocols, int registered, int* channels);
    ncclResult_t (*finalize)(void* context);
    ncclResult_t (*getChunkSize)(void* context, int function, size_t bytes, int algorithm, int protocol, int channels,
                                 size_t* chunkBytes);
};

struct TunerV4 {
    const char* name;
    ncclResult_t (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
    ncclResult_t (*getCollInfo)(void* context, int function, size_t bytes, int pipeOps, float** table, int algorithms,
                                int protocols, int registered, int* channels);
    ncclResult_t (*destroy)(void* context);
};

struct TunerV3 {
    const char* name;
    ncclResult_t (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
    ncclResult_t (*getCollInfo)(void* context, int function, size_t bytes, int pipeOps, float** table, int algorithms,
                                int protocols, int* channels);
    ncclResult_t (*destroy)(void* context);
};

struct TunerV2 {
    const char* name;
    ncclResult_t (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
    ncclResult_t (*getCollInfo)(void* context, int function, size_t bytes, int collNet, int nvls, int pipeOps,
                                int* algorithm, int* protocol, int* channels);
    ncclResult_t (*destroy)(void* context);
};

}  // namespace rankscope::vgpu::tuner_abi

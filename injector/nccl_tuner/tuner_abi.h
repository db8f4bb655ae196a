// SPDX-License-Identifier: Apache-2.0
// The binary interface of NCCL's tuner plugins, in our own words: only what we read. Source: the layouts that NCCL 2.21
// (v2), 2.22 (v3), 2.24 (v4), 2.28 (v5), 2.30 (v6) and 2.32.6 (v7) use in src/include/plugin/tuner/; which version a
// release asks for first: src/plugin/tuner.cc.
//
// NCCL looks a plugin up by the data symbol ncclTunerPlugin_vN, the newest first. Every function returns an
// ncclResult_t; we always return 0 (success): whatever the headers say of a fallback, NCCL hands an error on to the
// job.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::injector::tuner_abi {

inline constexpr int kSuccess = 0;

/// NCCL's own log, which prints where NCCL_DEBUG tells it to.
using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);
inline constexpr int kLogWarning = 2, kLogInfo = 3;
inline constexpr unsigned long kLogTuning = 0x40;

/// ncclFunc_t of what a tuner is asked about; sends, receives and all-to-alls are not.
enum Function : int { broadcast = 0, reduce = 1, allGather = 2, reduceScatter = 3, allReduce = 4 };
inline constexpr int kFunctions = 5;

enum Algorithm : int { tree = 0, ring = 1, collnetDirect = 2, collnetChain = 3, nvls = 4, nvlsTree = 5, pat = 6 };
inline constexpr int kAlgorithms = 7;

enum Protocol : int { ll = 0, ll128 = 1, simple = 2 };
inline constexpr int kProtocols = 3;

/// `table` is float[algorithms][protocols] in one piece, predicted microseconds, though NCCL declares it as a pointer
/// to pointers. A negative entry is a combination that does not exist here; of the others the smallest is taken.
/// `channels` is 0 on entry: as many as NCCL thinks right.
using GetCollInfoV5 = int (*)(void* context, int function, size_t bytes, int pipeOps, float** table, int algorithms,
                              int protocols, int registered, int* channels);

/// The table behind ncclTunerPlugin_v2. Nothing says which combinations exist: NCCL 2.21 takes the answer unchecked.
/// -1: no answer.
struct TunerV2 {
    const char* name;
    int (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
    int (*getCollInfo)(void* context, int function, size_t bytes, int collNet, int nvls, int pipeOps, int* algorithm,
                       int* protocol, int* channels);
    int (*destroy)(void* context);
};

struct TunerV3 {
    const char* name;
    int (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
    int (*getCollInfo)(void* context, int function, size_t bytes, int pipeOps, float** table, int algorithms,
                       int protocols, int* channels);
    int (*destroy)(void* context);
};

struct TunerV4 {
    const char* name;
    int (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
    GetCollInfoV5 getCollInfo;
    int (*destroy)(void* context);
};

/// `nvlDomains` and `constants` (which a plugin may change) are handed on to a chained plugin unread, `constants` in
/// the form that it knows.
using InitV5 = int (*)(void** context, uint64_t commId, size_t ranks, size_t nodes, Logger logger, void* nvlDomains,
                       void* constants);

struct TunerV5 {
    const char* name;
    InitV5 init;
    GetCollInfoV5 getCollInfo;
    int (*finalize)(void* context);
};

/// v6 lets the plugin change the chunk size of what was chosen; a null function means that it does not.
struct TunerV6 {
    const char* name;
    InitV5 init;
    GetCollInfoV5 getCollInfo;
    int (*finalize)(void* context);
    int (*getChunkSize)(void* context, int function, size_t bytes, int algorithm, int protocol, int channels,
                        size_t* chunkBytes);
};

/// v7 has v6's functions. Only the constants that init is handed grew.
using TunerV7 = TunerV6;

/// NCCL's model of the machine: microseconds, and GB/s by compute capability (Volta to Blackwell; Rubin is the fifth)
/// and by 1, 2, 4 nodes.
template <int ComputeCapabilities>
struct Constants {
    double baseLatencies[kAlgorithms][kProtocols];
    double hardwareLatencies[3][kAlgorithms][kProtocols];  // NVLink, PCIe, network
    double bandwidths[5][ComputeCapabilities][3];          // LL; LL128, ring and tree; tree; NVLS tree
};
using ConstantsV5 = Constants<4>;
using ConstantsV7 = Constants<5>;
static_assert(sizeof(ConstantsV5) == 1152 && sizeof(ConstantsV7) == 1272);

static_assert(offsetof(TunerV6, finalize) == offsetof(TunerV5, finalize) &&
              sizeof(TunerV6) == sizeof(TunerV5) + sizeof(void*));

}  // namespace rankscope::injector::tuner_abi

// SPDX-License-Identifier: Apache-2.0
// A tuner plugin that sends every all-reduce over a ring with the Simple protocol and one channel; other functions are
// left alone. VGPU_TUNER_VERSION says which version of the interface it speaks: those that get a cost table, or the
// oldest, which names its choice.
#include <nccl.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr int kAllReduce = 4, kRing = 1, kSimple = 2;

#if VGPU_TUNER_VERSION >= 5
struct Tuner {
    const char* name;
    ncclResult_t (*init)(void**, uint64_t, size_t, size_t, void*, void*, void*);
    ncclResult_t (*getCollInfo)(void*, int, size_t, int, float**, int, int, int, int*);
    ncclResult_t (*finalize)(void*);
#if VGPU_TUNER_VERSION >= 6
    ncclResult_t (*getChunkSize)(void*, int, size_t, int, int, int, size_t*);
#endif
};

ncclResult_t init(void** context, uint64_t, size_t ranks, size_t nodes, void*, void*, void* constants) {
    *context = constants;
    // Latencies of 7 algorithms and 3 protocols, by themselves and on 3 links, then 5 tables for 4 compute
    // capabilities, or 5 from version 7 on.
    constexpr size_t kEntries = 7 * 3 * 4 + 5 * (VGPU_TUNER_VERSION >= 7 ? 5 : 4) * 3;
    const auto* numbers = static_cast<const double*>(constants);
    return ranks >= nodes && nodes >= 1 && constants && numbers[kEntries - 1] == 0 ? ncclSuccess : ncclInternalError;
}

ncclResult_t choose(void* context, int function, size_t bytes, int, float** table, int algorithms, int protocols, int,
                    int* channels) {
    if (!context || bytes == 0 || algorithms != 7 || protocols != 3) return ncclInternalError;
    auto* costs = reinterpret_cast<float*>(table);
    if (function != kAllReduce || costs[kRing * protocols + kSimple] < 0) return ncclSuccess;
    costs[kRing * protocols + kSimple] = 0;
    *channels = 1;
    return ncclSuccess;
}
#if VGPU_TUNER_VERSION >= 6
ncclResult_t changeChunk(void* context, int function, size_t bytes, int algorithm, int protocol, int channels,
                         size_t* chunkBytes) {
    const bool chosen = function != kAllReduce || (algorithm == kRing && protocol == kSimple && channels == 1);
    return context && bytes > 0 && chosen && *chunkBytes > 0 ? ncclSuccess : ncclInternalError;
}
#endif
#else
struct Tuner {
    const char* name;
    ncclResult_t (*init)(size_t, size_t, void*, void**);
    ncclResult_t (*getCollInfo)(void*, int, size_t, int, int, int, int*, int*, int*);
    ncclResult_t (*finalize)(void*);
};

ncclResult_t init(size_t, size_t, void*, void** context) {
    *context = context;
    return ncclSuccess;
}

ncclResult_t choose(void*, int function, size_t, int, int, int, int* algorithm, int* protocol, int* channels) {
    if (function != kAllReduce) return ncclSuccess;
    *algorithm = kRing;
    *protocol = kSimple;
    *channels = 1;
    return ncclSuccess;
}
#endif

ncclResult_t finish(void*) {
    return ncclSuccess;
}

}  // namespace

#define VGPU_NAME(version) ncclTunerPlugin_v##version
#define VGPU_SYMBOL(version) VGPU_NAME(version)
extern "C" [[gnu::visibility("default")]] const Tuner VGPU_SYMBOL(VGPU_TUNER_VERSION) = {"ring", init, choose, finish,
#if VGPU_TUNER_VERSION >= 6
                                                                                         changeChunk
#endif
};

// SPDX-License-Identifier: Apache-2.0
// The user's own NCCL profiler plugin (interface v5 of NCCL 2.28, src/include/plugin/profiler/profiler_v5.h, or with
// USER_PLUGIN_VERSION=7 v7 of NCCL 2.32): counts collectives and tells the count when its communicator ends. It asks
// for collectives alone.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kCollectives = 2;

struct Descriptor {
    uint64_t type;
    void* parent;
    int rank;
    struct {
        uint64_t sequence;
        const char* function;
        const void* send;
        void* receive;
        size_t count;
        int root;
        const char* dataType;
        uint8_t channels, warps;
        const char *algorithm, *protocol;
        void* parentGroup;
        const char* kernelVariant;  // v7, as what follows
        bool isSymmetric;
        uint64_t userTag;
    } collective;
};

struct Context {
    int rank;
    int started;
    int stopped;
    size_t elements;
    uint64_t tag;
};
Context context;

int init(void** own, uint64_t, int* mask, const char*, int, int, int rank, void*) {
    context = {rank, 0, 0, 0, 0};
    *own = &context;
    *mask = kCollectives;
    return 0;
}

int startEvent(void* own, void** event, Descriptor* descriptor) {
    *event = nullptr;
    if (descriptor->type != kCollectives || std::strcmp(descriptor->collective.function, "AllReduce") != 0) return 0;
    auto* mine = static_cast<Context*>(own);
    ++mine->started;
    mine->elements += descriptor->collective.count;
#ifdef USER_PLUGIN_VERSION
    mine->tag = descriptor->collective.userTag;
#endif
    *event = mine;
    return 0;
}

int stopEvent(void* event) {
    if (event != nullptr) ++static_cast<Context*>(event)->stopped;
    return 0;
}

int recordEventState(void*, int, void*) {
    return 0;
}

int finalize(void* own) {
    const auto* mine = static_cast<Context*>(own);
    std::printf("user's plugin, rank %d: %d started, %d stopped, %zu elements, tag %d\n", mine->rank, mine->started,
                mine->stopped, mine->elements, static_cast<int>(mine->tag));
    return 0;
}

struct Plugin {
    const char* name;
    int (*init)(void**, uint64_t, int*, const char*, int, int, int, void*);
    int (*startEvent)(void*, void**, Descriptor*);
    int (*stopEvent)(void*);
    int (*recordEventState)(void*, int, void*);
    int (*finalize)(void*);
};

}  // namespace

#ifdef USER_PLUGIN_VERSION
extern "C" __attribute__((visibility("default"))) const Plugin ncclProfiler_v7;
const Plugin ncclProfiler_v7
#else
extern "C" __attribute__((visibility("default"))) const Plugin ncclProfiler_v5;
const Plugin ncclProfiler_v5
#endif
    = {"victim", init, startEvent, stopEvent, recordEventState, finalize};

// SPDX-License-Identifier: Apache-2.0
// The tuner plugin that a user of the injector had before, in one version of NCCL's interface (CHAINED_TUNER_VERSION).
// It prefers tree with Simple in three channels, and counts in CHAINED_TUNER_LOG, a file, what it is asked.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

void note(const char* what) {
    const char* name = std::getenv("CHAINED_TUNER_LOG");
    std::FILE* log = name == nullptr ? nullptr : std::fopen(name, "a");
    if (log == nullptr) return;
    std::fprintf(log, "v%d %s\n", CHAINED_TUNER_VERSION, what);
    std::fclose(log);
}

int finish(void* context) {
    note(context == nullptr ? "strange end" : "end");
    return 0;
}

int g_context;
[[maybe_unused]] int begin(void** context) {
    *context = &g_context;
    note("begin");
    return std::getenv("CHAINED_TUNER_REFUSES") != nullptr ? 3 : 0;
}

[[maybe_unused]] int prefer(void* context, float** table, int* channels) {
    note(context == &g_context ? "asked" : "strange question");
    reinterpret_cast<float*>(table)[0 * 3 + 2] = 0;
    *channels = 3;
    return 5;  // an error of theirs must not reach NCCL through us
}

#if CHAINED_TUNER_VERSION == 2
struct Tuner {
    const char* name;
    int (*init)(size_t, size_t, void*, void**);
    int (*getCollInfo)(void*, int, size_t, int, int, int, int*, int*, int*);
    int (*destroy)(void*);
} const g_tuner = {
    "user's", [](size_t, size_t, void*, void** context) { return begin(context); },
    [](void* context, int, size_t, int collNet, int nvls, int, int* algorithm, int* protocol, int* channels) {
        note(context == &g_context && collNet == 0 && nvls == 1 ? "asked" : "strange question");
        *algorithm = 0;
        *protocol = 2;
        *channels = 3;
        return 0;
    },
    finish};
#elif CHAINED_TUNER_VERSION == 3
struct Tuner {
    const char* name;
    int (*init)(size_t, size_t, void*, void**);
    int (*getCollInfo)(void*, int, size_t, int, float**, int, int, int*);
    int (*destroy)(void*);
} const g_tuner = {"user's", [](size_t, size_t, void*, void** context) { return begin(context); },
                   [](void* context, int, size_t, int, float** table, int, int, int* channels) {
                       return prefer(context, table, channels);
                   },
                   finish};
#elif CHAINED_TUNER_VERSION == 4
struct Tuner {
    const char* name;
    int (*init)(size_t, size_t, void*, void**);
    int (*getCollInfo)(void*, int, size_t, int, float**, int, int, int, int*);
    int (*destroy)(void*);
} const g_tuner = {"user's", [](size_t, size_t, void*, void** context) { return begin(context); },
                   [](void* context, int, size_t, int, float** table, int, int, int, int* channels) {
                       return prefer(context, table, channels);
                   },
                   finish};
#else
/// Of the last of five tables of three numbers for each compute capability it knows, behind 84 latencies: doubles it.
void changeLastNumber(double* constants) {
    constexpr int kCapabilities = CHAINED_TUNER_VERSION >= 7 ? 5 : 4;
    constants[84 + 5 * kCapabilities * 3 - 1] *= 2;
}

struct Tuner {
    const char* name;
    int (*init)(void**, uint64_t, size_t, size_t, void*, void*, void*);
    int (*getCollInfo)(void*, int, size_t, int, float**, int, int, int, int*);
    int (*finalize)(void*);
#if CHAINED_TUNER_VERSION >= 6
    int (*getChunkSize)(void*, int, size_t, int, int, int, size_t*);
#endif
} const g_tuner = {"user's",
                   [](void** context, uint64_t, size_t, size_t, void*, void*, void* constants) {
                       if (constants != nullptr) changeLastNumber(static_cast<double*>(constants));
                       return begin(context);
                   },
                   [](void* context, int, size_t, int, float** table, int, int, int, int* channels) {
                       return prefer(context, table, channels);
                   },
                   finish,
#if CHAINED_TUNER_VERSION >= 6
                   [](void*, int, size_t, int, int, int, size_t* chunkBytes) {
                       *chunkBytes /= 2;
                       return 0;
                   }
#endif
};
#endif

}  // namespace

#define CHAINED_NAME(version) ncclTunerPlugin_v##version
#define CHAINED_SYMBOL(version) CHAINED_NAME(version)
extern "C" [[gnu::visibility("default")]] const Tuner CHAINED_SYMBOL(CHAINED_TUNER_VERSION) = g_tuner;

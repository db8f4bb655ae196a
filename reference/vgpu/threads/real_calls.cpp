// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/threads/real_calls.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rankscope::vgpu::threads {
namespace {

struct CodeRange {
    uintptr_t begin, end;
    Caller caller;
};

constexpr size_t kMaxRanges = 8;
CodeRange g_ranges[kMaxRanges];
std::atomic<size_t> g_rangeCount{0};
std::atomic<unsigned long long> g_librariesSeen{0};
std::atomic<bool> g_looking{false};

const char* baseName(const char* path) {
    const char* slash = std::strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool startsWith(const char* text, const char* prefix) {
    return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

bool holds(const dl_phdr_info& library, const void* address) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    for (int i = 0; i < library.dlpi_phnum; i++) {
        const auto& part = library.dlpi_phdr[i];
        const uintptr_t begin = library.dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && at >= begin && at < begin + part.p_memsz) return true;
    }
    return false;
}

void remember(const dl_phdr_info& library, Caller caller) {
    CodeRange range{UINTPTR_MAX, 0, caller};
    for (int i = 0; i < library.dlpi_phnum; i++) {
        const auto& part = library.dlpi_phdr[i];
        if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
        const uintptr_t begin = library.dlpi_addr + part.p_vaddr;
        range.begin = begin < range.begin ? begin : range.begin;
        range.end = begin + part.p_memsz > range.end ? begin + part.p_memsz : range.end;
    }
    const size_t count = g_rangeCount.load(std::memory_order_relaxed);
    for (size_t i = 0; i < count; i++)
        if (g_ranges[i].begin == range.begin) return;
    if (count == kMaxRanges) return;
    g_ranges[count] = range;
    g_rangeCount.store(count + 1, std::memory_order_release);
}

int lookAtLibrary(dl_phdr_info* library, size_t, void* interpreter) {
    const char* name = baseName(library->dlpi_name);
    if (holds(*library, reinterpret_cast<const void*>(&lookAtLibrary)) || startsWith(name, "librankscope"))
        remember(*library, Caller::profiler);
    else if (interpreter && holds(*library, interpreter))
        remember(*library, Caller::interpreter);
    return 0;
}

int countLibraries(dl_phdr_info* library, size_t, void* seen) {
    *static_cast<unsigned long long*>(seen) = library->dlpi_adds;
    return 1;
}

/// Libraries may come later than this one: those that have are looked at again, but not by every call.
void lookAgain() {
    unsigned long long seen = 0;
    dl_iterate_phdr(countLibraries, &seen);
    if (seen == g_librariesSeen.load(std::memory_order_relaxed) || g_looking.exchange(true)) return;
    g_librariesSeen.store(seen, std::memory_order_relaxed);
    dl_iterate_phdr(lookAtLibrary, dlsym(RTLD_DEFAULT, "PyEval_SaveThread"));
    g_looking.store(false);
}

[[gnu::constructor]] void lookAtStart() {
    lookAgain();
}

}  // namespace

void* nextDefinition(const char* name, const char* version) {
    void* function = version ? dlvsym(RTLD_NEXT, name, version) : nullptr;
    if (!function) function = dlsym(RTLD_NEXT, name);
    if (function) return function;
    // A program that found this library only after libc sees nothing of it, but its own calls do.
    static void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (libc && version) function = dlvsym(libc, name, version);
    if (libc && !function) function = dlsym(libc, name);
    if (function) return function;
    std::fprintf(stderr, "rankscope virtual GPUs: libc has no %s\n", name);
    std::abort();
}

Caller callerAt(const void* returnAddress) {
    const auto at = reinterpret_cast<uintptr_t>(returnAddress);
    const size_t count = g_rangeCount.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; i++)
        if (at >= g_ranges[i].begin && at < g_ranges[i].end) return g_ranges[i].caller;
    return Caller::program;
}

bool isComputingLibrary(const void* codeAddress) {
    lookAgain();
    Dl_info library;
    if (!dladdr(codeAddress, &library) || !library.dli_fname) return false;
    const char* name = baseName(library.dli_fname);
    for (const char* prefix : {"libgomp", "libiomp", "libomp", "libopenblas", "libmkl", "libtbb"})
        if (startsWith(name, prefix)) return true;
    return false;
}

}  // namespace rankscope::vgpu::threads

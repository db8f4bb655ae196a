// SPDX-License-Identifier: Apache-2.0
// The user's own LD_PRELOAD library: counts a call, passes it on, and tells the count at the end.
#include <dlfcn.h>

#include <cstdio>

namespace {

int calls = 0;

__attribute__((destructor)) void tell() {
    if (calls == 0) return;
    // By stdio, as the program's own output: libcupti flushes stdio at exit, and a raw write would show by its place
    // that it did.
    std::printf("user's preload: %d calls\n", calls);
    std::fflush(stdout);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int cudaStreamSynchronize(void* stream) {
    ++calls;
    static auto* real = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_NEXT, "cudaStreamSynchronize"));
    return real(stream);
}

// SPDX-License-Identifier: Apache-2.0
// Takes functions out of library handles, as ctypes does; symbol interposition never sees these calls.
#include <dlfcn.h>

#include <cstdio>

int main() {
    void* runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    if (runtime == nullptr) {
        std::printf("%s\n", dlerror());
        return 1;
    }
    auto* synchronize = reinterpret_cast<int (*)(void*)>(dlsym(runtime, "cudaStreamSynchronize"));
    int result = 0;
    for (int i = 0; i < 10; ++i) result = synchronize(nullptr);
    std::printf("result %d\n", result);
    // The default scope must look as it does without a recording: no name of the runtime is in it.
    std::printf("missing symbol: %s\n", dlsym(runtime, "cudaNoSuchFunction") == nullptr ? "missing" : "found");
    const char* error = dlerror();
    std::printf("dlerror: %s\n", error == nullptr ? "empty" : "set");
}

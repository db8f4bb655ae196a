// SPDX-License-Identifier: Apache-2.0
// dlopen LIBRARY MODE TIMES [close]: opens a library that calls the CUDA runtime, calls it, and closes it again when
// asked to.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
    const int mode = std::strcmp(argv[2], "global") == 0     ? RTLD_NOW | RTLD_GLOBAL
                     : std::strcmp(argv[2], "deepbind") == 0 ? RTLD_LAZY | RTLD_DEEPBIND
                                                             : RTLD_NOW | RTLD_LOCAL;
    for (int i = 0; i < std::atoi(argv[3]); ++i) {
        void* library = dlopen(argv[1], mode);
        if (library == nullptr) {
            std::printf("%s\n", dlerror());
            return 1;
        }
        auto* work = reinterpret_cast<int (*)(int)>(dlsym(library, "userLibraryWork"));
        std::printf("work %d, dlerror %s\n", work(10), dlerror() == nullptr ? "empty" : "set");
        if (argc > 4) {
            dlclose(library);
            // What the library left free is taken, so that it comes back elsewhere.
            mmap(nullptr, size_t{3} << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
    }
}

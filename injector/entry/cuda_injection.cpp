// SPDX-License-Identifier: Apache-2.0
// The CUDA driver calls InitializeInjection of the library named by CUDA_INJECTION64_PATH while it initialises itself.
// It also comes in processes whose CUDA runtime is linked statically and whose calls therefore pass no hook.
#include <dlfcn.h>

#include "injector/entry/environment.h"
#include "injector/export.h"
#include "injector/session/session.h"

using namespace rankscope::injector;

RANKSCOPE_EXPORT int InitializeInjection() {
    ErrnoKeeper errnoKeeper;
    if (t_thread.depth == 0) g_session.isAlive(Cause::gpu);
    static bool chained = false;
    if (chained) return 1;
    chained = true;
    const char* users = readVariable("RANKSCOPE_CHAIN_CUDA_INJECTION");
    if (users == nullptr || users[0] == '\0') return 1;
    if (void* library = dlopen(users, RTLD_NOW | RTLD_LOCAL)) {
        using Initialize = int (*)();
        if (const auto initialize = reinterpret_cast<Initialize>(dlsym(library, "InitializeInjection"))) initialize();
    } else {
        dlerror();
        g_session.tellStatus(rankscope::capture::Source::cupti, 2, 0,
                             "the CUDA injection library of the user cannot be opened");
    }
    return 1;
}

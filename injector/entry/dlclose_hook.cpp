// SPDX-License-Identifier: Apache-2.0
// A library that the job unloads may come back at another address, so what we know of it is forgotten. Addresses found
// in the global scope, which nobody can unload, are not concerned.
#include <dlfcn.h>

#include "injector/export.h"
#include "injector/real_symbol.h"

RANKSCOPE_EXPORT int dlclose(void* handle) {
    using Close = int (*)(void*);
    static constinit std::atomic<Close> known{nullptr};
    Close real = known.load(std::memory_order_relaxed);
    if (real == nullptr) {
        real = reinterpret_cast<Close>(dlsym(RTLD_NEXT, "dlclose"));
        known.store(real, std::memory_order_relaxed);
    }
    if (real == nullptr) return -1;
    rankscope::injector::forgetAddresses();
    const int result = real(handle);
    rankscope::injector::forgetAddresses();  // what another thread looked up meanwhile
    return result;
}

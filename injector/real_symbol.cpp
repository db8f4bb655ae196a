// SPDX-License-Identifier: Apache-2.0
#include "injector/real_symbol.h"

#include <dlfcn.h>

#include <cerrno>

#include "injector/loaded_libraries.h"

#ifndef RTLD_NEXT
#define RTLD_NEXT (reinterpret_cast<void*>(-1L))
#endif

namespace rankscope::injector {
namespace {

/// The real one: ours would make everything forget its address.
void closeLibrary(void* handle) noexcept {
    using Close = int (*)(void*);
    static constinit std::atomic<Close> close{nullptr};
    if (close.load(std::memory_order_relaxed) == nullptr)
        close.store(reinterpret_cast<Close>(dlsym(RTLD_NEXT, "dlclose")), std::memory_order_relaxed);
    if (const Close function = close.load(std::memory_order_relaxed)) function(handle);
}

std::atomic<ForgettableAddress*> g_forgettable{nullptr};

void* symbolOf(const char* library, const char* name, void* self) noexcept {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return nullptr;
    void* symbol = dlsym(handle, name);
    closeLibrary(handle);  // it was loaded before and stays loaded; we give back only the count
    return symbol == self ? nullptr : symbol;
}

void* searchLoaded(const char* libraryPrefix, const char* name, void* self) noexcept {
    constexpr int kMaxCopies = 8;
    for (int copy = 0; copy < kMaxCopies; ++copy) {
        char path[4096];
        if (!findLoadedLibrary(libraryPrefix, copy, path, sizeof path)) return nullptr;
        if (void* symbol = symbolOf(path, name, self)) return symbol;
    }
    return nullptr;
}

}  // namespace

void* findRealSymbol(const char* name, const char* libraryPrefix, void* self, void* caller, bool* mayGo) noexcept {
    const int error = errno;
    void* symbol = dlsym(RTLD_NEXT, name);
    if (symbol == self) symbol = nullptr;  // preloaded twice under two names
    if (mayGo != nullptr) *mayGo = symbol == nullptr;
    Dl_info info{};
    if (symbol == nullptr && dladdr(caller, &info) != 0 && info.dli_fname != nullptr)
        symbol = symbolOf(info.dli_fname, name, self);
    if (symbol == nullptr) symbol = searchLoaded(libraryPrefix, name, self);
    dlerror();  // leave no message of ours for the job's next dlerror()
    errno = error;
    return symbol;
}

void listForgettable(ForgettableAddress& entry) noexcept {
    if (entry.listed.exchange(true)) return;
    ForgettableAddress* head = g_forgettable.load();
    do entry.next.store(head);
    while (!g_forgettable.compare_exchange_weak(head, &entry));
}

void forgetAddresses() noexcept {
    for (ForgettableAddress* entry = g_forgettable.load(); entry != nullptr; entry = entry->next.load())
        entry->address->store(nullptr);
}

void* findInLoaded(const char* libraryPrefix, const char* name) noexcept {
    const int error = errno;
    void* found = searchLoaded(libraryPrefix, name, nullptr);
    dlerror();
    errno = error;
    return found;
}

}  // namespace rankscope::injector

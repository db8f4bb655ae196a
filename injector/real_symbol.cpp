// SPDX-License-Identifier: Apache-2.0
#include "injector/real_symbol.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <link.h>

#ifndef RTLD_NEXT
#define RTLD_NEXT (reinterpret_cast<void*>(-1L))
#endif

namespace rankscope::injector {
namespace {

const char* baseName(const char* path) noexcept {
    const char* slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

/// The real one: ours would make everything forget its address.
void closeLibrary(void* handle) noexcept {
    using Close = int (*)(void*);
    static constinit std::atomic<Close> close{nullptr};
    if (close.load(std::memory_order_relaxed) == nullptr) close.store(reinterpret_cast<Close>(dlsym(RTLD_NEXT, "dlclose")), std::memory_order_relaxed);
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

struct Search {
    const char* libraryPrefix;
    int skip;          ///< matches seen before
    char path[4096];
};

/// Only copies the path: opening it here would take the loader's locks in the wrong order.
int visit(dl_phdr_info* info, size_t, void* data) noexcept {
    auto* search = static_cast<Search*>(data);
    const char* path = info->dlpi_name;
    if (path == nullptr || std::strncmp(baseName(path), search->libraryPrefix, std::strlen(search->libraryPrefix)) != 0) return 0;
    if (std::strlen(path) >= sizeof search->path || search->skip-- > 0) return 0;
    std::strcpy(search->path, path);
    return 1;
}

void* searchLoaded(const char* libraryPrefix, const char* name, void* self) noexcept {
    constexpr int kMaxCopies = 8;
    for (int copy = 0; copy < kMaxCopies; ++copy) {
        Search search{libraryPrefix, copy, {}};
        if (dl_iterate_phdr(visit, &search) == 0) return nullptr;
        if (void* symbol = symbolOf(search.path, name, self)) return symbol;
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
    if (symbol == nullptr && dladdr(caller, &info) != 0 && info.dli_fname != nullptr) symbol = symbolOf(info.dli_fname, name, self);
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
    for (ForgettableAddress* entry = g_forgettable.load(); entry != nullptr; entry = entry->next.load()) entry->address->store(nullptr);
}

void* findInLoaded(const char* libraryPrefix, const char* name) noexcept {
    const int error = errno;
    void* found = searchLoaded(libraryPrefix, name, nullptr);
    dlerror();
    errno = error;
    return found;
}

}  // namespace rankscope::injector

// SPDX-License-Identifier: Apache-2.0
#include "injector/entry/libc_function.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace rankscope::injector {
namespace {

/// What a loaded library says of its symbols (System V gABI, "Dynamic Section"; the hash table is GNU's).
struct Symbols {
    const ElfW(Sym) * all = nullptr;
    const char* names = nullptr;
    const uint32_t* hash = nullptr;
    const uint16_t* versions = nullptr;

    explicit Symbols(const dl_phdr_info& library) noexcept {
        for (int i = 0; i < library.dlpi_phnum; ++i) {
            if (library.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
            const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + library.dlpi_phdr[i].p_vaddr);
            for (; entry->d_tag != DT_NULL; ++entry) {
                const ElfW(Addr) at = entry->d_un.d_ptr;  // glibc has added the library's address
                if (entry->d_tag == DT_SYMTAB) all = reinterpret_cast<const ElfW(Sym)*>(at);
                if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(at);
                if (entry->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const uint32_t*>(at);
                if (entry->d_tag == DT_VERSYM) versions = reinterpret_cast<const uint16_t*>(at);
            }
        }
    }

    /// The default version of a function; null when there is none.
    const ElfW(Sym) * find(const char* name) const noexcept {
        if (all == nullptr || names == nullptr || hash == nullptr || versions == nullptr) return nullptr;
        uint32_t wanted = 5381;
        for (const char* c = name; *c != '\0'; ++c) wanted = wanted * 33 + static_cast<uint8_t>(*c);
        const uint32_t bucketCount = hash[0], firstHashed = hash[1], bloomWords = hash[2];
        if (bucketCount == 0) return nullptr;
        const uint32_t* buckets = hash + 4 + bloomWords * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
        const uint32_t* chains = buckets + bucketCount;
        uint32_t index = buckets[wanted % bucketCount];
        if (index < firstHashed) return nullptr;
        for (;; ++index) {
            const uint32_t found = chains[index - firstHashed];
            constexpr uint16_t kHidden = 0x8000;
            if ((found | 1) == (wanted | 1) && (versions[index] & kHidden) == 0 && all[index].st_value != 0 &&
                std::strcmp(names + all[index].st_name, name) == 0)
                return all + index;
            if ((found & 1) != 0) return nullptr;
        }
    }
};

struct Search {
    const char* name;
    void* found;
};

int visit(dl_phdr_info* library, size_t, void* data) noexcept {
    const char* slash = library->dlpi_name == nullptr ? nullptr : std::strrchr(library->dlpi_name, '/');
    if (slash == nullptr || std::strcmp(slash + 1, "libc.so.6") != 0) return 0;
    auto& search = *static_cast<Search*>(data);
    if (const auto* symbol = Symbols(*library).find(search.name))
        search.found = reinterpret_cast<void*>(library->dlpi_addr + symbol->st_value);
    return 1;
}

}  // namespace

void* findLibcFunction(const char* name) noexcept {
    // Another preloaded library's comes before the C library's own, where it can be asked for.
    if (&dlsym != nullptr) return dlsym(RTLD_NEXT, name);
    Search search{name, nullptr};
    dl_iterate_phdr(visit, &search);
    return search.found;
}

}  // namespace rankscope::injector

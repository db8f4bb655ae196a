// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/console/shared_library.h"

#include <dlfcn.h>
#include <link.h>

namespace rankscope::cli {

SharedLibrary SharedLibrary::openFirst(const std::vector<std::string>& names, const std::vector<std::string>& folders) {
    SharedLibrary library;
    std::vector<std::string> candidates = names;
    for (const auto& folder : folders)
        for (const auto& name : names) candidates.push_back(folder + "/" + name);
    for (const auto& candidate : candidates) {
        library.m_handle = dlopen(candidate.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (library.m_handle) {
            link_map* map = nullptr;
            library.m_path = dlinfo(library.m_handle, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : candidate;
            return library;
        }
    }
    return library;
}

void* SharedLibrary::address(const char* symbol) const {
    return m_handle ? dlsym(m_handle, symbol) : nullptr;
}

}  // namespace rankscope::cli

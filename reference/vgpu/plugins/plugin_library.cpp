// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/plugins/plugin_library.h"

#include <dlfcn.h>
#include <strings.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace rankscope::vgpu {

void* openPlugin(const char* variable, const char* prefix) {
    const char* name = std::getenv(variable);
    if (!name || !*name || strcasecmp(name, "none") == 0) return nullptr;
    if (std::strcmp(name, "STATIC_PLUGIN") == 0) return dlopen(nullptr, RTLD_NOW);
    if (std::strchr(name, '/')) return dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return dlopen((std::string("lib") + prefix + "-" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
}

void ignoreLog(int, unsigned long, const char*, int, const char*, ...) {}

}  // namespace rankscope::vgpu

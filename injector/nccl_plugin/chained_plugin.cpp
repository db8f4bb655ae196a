// SPDX-License-Identifier: Apache-2.0
#include "injector/nccl_plugin/chained_plugin.h"

#include <dlfcn.h>

#include <cstdlib>

#include "injector/session/session.h"
#include "injector/text.h"

namespace rankscope::injector {

namespace {

struct Chain {
    Mutex mutex;
    bool tried = false;
    bool told = false;
    ChainedPlugin plugin;
};

constinit Chain g_chain;

/// NCCL's own rule: a value with a slash, or a file that dlopen finds, is a library; else it names
/// libnccl-profiler-NAME.so.
void* openByNcclRule(const char* value) noexcept {
    if (void* library = dlopen(value, RTLD_NOW | RTLD_LOCAL)) return library;
    if (std::strchr(value, '/') != nullptr) return nullptr;
    FixedText<512> name;
    name.append("libnccl-profiler-").append(value).append(".so");
    return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

void renewChainLock() noexcept {
    g_chain.mutex.renew();
}

const ChainedPlugin& chainedPlugin() noexcept {
    const ErrnoKeeper keep;
    const Lock lock(g_chain.mutex);
    if (g_chain.tried) return g_chain.plugin;
    g_chain.tried = true;
    const char* value = std::getenv("RANKSCOPE_CHAIN_NCCL_PROFILER");
    if (value == nullptr || *value == '\0') return g_chain.plugin;
    void* library = openByNcclRule(value);
    if (library == nullptr) {
        g_session.tellStatus(capture::Source::ncclPlugin, 2, 0, "the job's own NCCL profiler plugin cannot be opened");
        return g_chain.plugin;
    }
    g_chain.plugin.v3 = static_cast<const profiler_abi::ProfilerV3*>(dlsym(library, "ncclProfiler_v3"));
    g_chain.plugin.v4 = static_cast<const profiler_abi::ProfilerV4*>(dlsym(library, "ncclProfiler_v4"));
    g_chain.plugin.v5 = static_cast<const profiler_abi::ProfilerV5*>(dlsym(library, "ncclProfiler_v5"));
    g_chain.plugin.v6 = static_cast<const profiler_abi::ProfilerV5*>(dlsym(library, "ncclProfiler_v6"));
    g_chain.plugin.v7 = static_cast<const profiler_abi::ProfilerV5*>(dlsym(library, "ncclProfiler_v7"));
    if (g_chain.plugin.v6 == nullptr) g_chain.plugin.v6 = g_chain.plugin.v5;
    if (g_chain.plugin.v7 == nullptr) g_chain.plugin.v7 = g_chain.plugin.v6;
    return g_chain.plugin;
}

void tellNotChained(int version) noexcept {
    const char* value = std::getenv("RANKSCOPE_CHAIN_NCCL_PROFILER");
    if (value == nullptr || *value == '\0') return;
    {
        const Lock lock(g_chain.mutex);
        if (g_chain.told) return;
        g_chain.told = true;
    }
    FixedText<160> message;
    message.append("the job's own NCCL profiler plugin does not speak v")
        .append(static_cast<int64_t>(version))
        .append(" and was left out");
    g_session.tellStatus(capture::Source::ncclPlugin, 1, 0, message.c_str());
}

}  // namespace rankscope::injector

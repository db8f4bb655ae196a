// SPDX-License-Identifier: Apache-2.0
#include "injector/nccl_tuner/chained_tuner.h"

#include <dlfcn.h>
#include <strings.h>

#include <cstdlib>
#include <cstring>

#include "injector/nccl_tuner/tuner_table.h"
#include "injector/record/mutex.h"
#include "injector/text.h"

namespace rankscope::injector {
namespace {

using namespace tuner_abi;

struct Plugin {
    Mutex mutex;
    bool tried = false;
    const TunerV2* v2 = nullptr;
    const TunerV3* v3 = nullptr;
    const TunerV4* v4 = nullptr;
    const TunerV5* v5 = nullptr;
    const TunerV6* v6 = nullptr;
    const TunerV7* v7 = nullptr;

    int newestUpTo(int version) const noexcept {
        if (v7 != nullptr && version >= 7) return 7;
        if (v6 != nullptr && version >= 6) return 6;
        if (v5 != nullptr && version >= 5) return 5;
        if (v4 != nullptr && version >= 4) return 4;
        if (v3 != nullptr && version >= 3) return 3;
        return v2 != nullptr ? 2 : 0;
    }
};

constinit Plugin g_plugin;

/// NCCL's rule (plugin_open.cc): the value as a file, then lib<prefix>-VALUE.so. `flags` are dlopen's.
void* openByNcclRule(const char* value, const char* prefix, int flags) noexcept {
    if (void* library = dlopen(value, flags)) return library;
    if (std::strchr(value, '/') != nullptr) return nullptr;
    FixedText<512> name;
    name.append(prefix).append("-").append(value).append(".so");
    return dlopen(name.c_str(), flags);
}

void* openLibrary(Logger logger) noexcept {
    constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
    if (!rowsComeFromRun()) return nullptr;  // the user named this library himself
    if (const char* value = std::getenv("RANKSCOPE_CHAIN_NCCL_TUNER"); value != nullptr && *value != '\0') {
        if (strcasecmp(value, "none") == 0) return nullptr;
        if (strcasecmp(value, "STATIC_PLUGIN") == 0) return dlopen(nullptr, kFlags);
        void* library = openByNcclRule(value, "libnccl-tuner", kFlags);
        if (library == nullptr && logger != nullptr)
            logger(kLogWarning, kLogTuning, "rankscope", 0,
                   "rankscope tuner: the job's own tuner plugin %s cannot be opened", value);
        return library;
    }
    if (void* library = dlopen("libnccl-tuner.so", kFlags)) return library;
    // NCCL has loaded its network plugin by now; another one is none of our business.
    const char* net = std::getenv("NCCL_NET_PLUGIN");
    if (net == nullptr || *net == '\0') return dlopen("libnccl-net.so", kFlags | RTLD_NOLOAD);
    return openByNcclRule(net, "libnccl-net", kFlags | RTLD_NOLOAD);
}

const Plugin& plugin(Logger logger) noexcept {
    const Lock lock(g_plugin.mutex);
    if (g_plugin.tried) return g_plugin;
    g_plugin.tried = true;
    void* library = openLibrary(logger);
    // A second copy of this library under another path would chain itself.
    if (library == nullptr || dlsym(library, "rankscopeTuner") != nullptr) return g_plugin;
    g_plugin.v2 = static_cast<const TunerV2*>(dlsym(library, "ncclTunerPlugin_v2"));
    g_plugin.v3 = static_cast<const TunerV3*>(dlsym(library, "ncclTunerPlugin_v3"));
    g_plugin.v4 = static_cast<const TunerV4*>(dlsym(library, "ncclTunerPlugin_v4"));
    g_plugin.v5 = static_cast<const TunerV5*>(dlsym(library, "ncclTunerPlugin_v5"));
    g_plugin.v6 = static_cast<const TunerV6*>(dlsym(library, "ncclTunerPlugin_v6"));
    g_plugin.v7 = static_cast<const TunerV7*>(dlsym(library, "ncclTunerPlugin_v7"));
    return g_plugin;
}

template <int To, int From>
void copyConstants(Constants<To>& to, const Constants<From>& from) noexcept {
    std::memcpy(to.baseLatencies, from.baseLatencies, sizeof to.baseLatencies);
    std::memcpy(to.hardwareLatencies, from.hardwareLatencies, sizeof to.hardwareLatencies);
    constexpr size_t kShared =
        sizeof to.bandwidths[0] < sizeof from.bandwidths[0] ? sizeof to.bandwidths[0] : sizeof from.bandwidths[0];
    for (int table = 0; table < 5; ++table) std::memcpy(to.bandwidths[table], from.bandwidths[table], kShared);
}

/// An older plugin under NCCL's v7 reads and changes the constants it knows, as NCCL itself does it
/// (src/plugin/tuner/tuner_v6.cc of 2.32.6).
int initWithOldConstants(InitV5 init, void** context, uint64_t commId, size_t ranks, size_t nodes, Logger logger,
                         void* nvlDomains, void* constants) noexcept {
    if (constants == nullptr) return init(context, commId, ranks, nodes, logger, nvlDomains, nullptr);
    auto& ncclsOwn = *static_cast<ConstantsV7*>(constants);
    ConstantsV5 known;
    copyConstants(known, ncclsOwn);
    const int result = init(context, commId, ranks, nodes, logger, nvlDomains, &known);
    if (result == kSuccess) copyConstants(ncclsOwn, known);
    return result;
}

}  // namespace

void ChainedTuner::open(int version, uint64_t commId, size_t ranks, size_t nodes, Logger logger, void* nvlDomains,
                        void* constants) noexcept {
    const Plugin& theirs = plugin(logger);
    const int spoken = theirs.newestUpTo(version);
    if (spoken == 0) return;
    int result = kSuccess;
    if (spoken >= 5) {
        const InitV5 init = spoken == 7 ? theirs.v7->init : spoken == 6 ? theirs.v6->init : theirs.v5->init;
        if (version >= 7 && spoken < 7)
            result = initWithOldConstants(init, &m_context, commId, ranks, nodes, logger, nvlDomains, constants);
        else
            result = init(&m_context, commId, ranks, nodes, logger, nvlDomains, constants);
    } else if (spoken == 4)
        result = theirs.v4->init(ranks, nodes, logger, &m_context);
    else if (spoken == 3)
        result = theirs.v3->init(ranks, nodes, logger, &m_context);
    else
        result = theirs.v2->init(ranks, nodes, logger, &m_context);
    if (result == kSuccess)
        m_version = spoken;
    else if (logger != nullptr)
        logger(kLogWarning, kLogTuning, "rankscope", 0,
               "rankscope tuner: the job's own tuner plugin refuses this communicator (%d)", result);
}

void ChainedTuner::ask(const TunerQuestion& q) const noexcept {
    if (m_version == 2)
        askV2(q);
    else if (m_version == 3)
        g_plugin.v3->getCollInfo(m_context, q.function, q.bytes, q.pipeOps, q.table, q.algorithms, q.protocols,
                                 q.channels);
    else if (m_version == 4)
        g_plugin.v4->getCollInfo(m_context, q.function, q.bytes, q.pipeOps, q.table, q.algorithms, q.protocols,
                                 q.registered, q.channels);
    else if (m_version == 5)
        g_plugin.v5->getCollInfo(m_context, q.function, q.bytes, q.pipeOps, q.table, q.algorithms, q.protocols,
                                 q.registered, q.channels);
    else if (m_version == 6)
        g_plugin.v6->getCollInfo(m_context, q.function, q.bytes, q.pipeOps, q.table, q.algorithms, q.protocols,
                                 q.registered, q.channels);
    else if (m_version == 7)
        g_plugin.v7->getCollInfo(m_context, q.function, q.bytes, q.pipeOps, q.table, q.algorithms, q.protocols,
                                 q.registered, q.channels);
}

void ChainedTuner::askV2(const TunerQuestion& q) const noexcept {
    if (q.table == nullptr) {
        g_plugin.v2->getCollInfo(m_context, q.function, q.bytes, q.collNet, q.nvls, q.pipeOps, q.algorithm, q.protocol,
                                 q.channels);
        return;
    }
    // As a newer NCCL asks a plugin that knows v2 only (src/plugin/tuner/tuner_v2.cc).
    const bool hasNvls = q.entry(nvls, simple) != nullptr || q.entry(nvlsTree, simple) != nullptr;
    const bool hasCollNet = q.entry(collnetChain, simple) != nullptr;
    int algorithm = -1, protocol = -1;
    if (g_plugin.v2->getCollInfo(m_context, q.function, q.bytes, hasCollNet, hasNvls, q.pipeOps, &algorithm, &protocol,
                                 q.channels) != kSuccess)
        return;
    if (algorithm < 0 || protocol < 0) return;
    if (float* chosen = q.entry(algorithm, protocol)) *chosen = 0;
}

void ChainedTuner::changeChunk(int function, size_t bytes, int algorithm, int protocol, int channels,
                               size_t* chunkBytes) const noexcept {
    if (m_version < 6) return;
    const auto change = m_version == 7 ? g_plugin.v7->getChunkSize : g_plugin.v6->getChunkSize;
    if (change != nullptr) change(m_context, function, bytes, algorithm, protocol, channels, chunkBytes);
}

void ChainedTuner::close() noexcept {
    if (m_version == 2)
        g_plugin.v2->destroy(m_context);
    else if (m_version == 3)
        g_plugin.v3->destroy(m_context);
    else if (m_version == 4)
        g_plugin.v4->destroy(m_context);
    else if (m_version == 5)
        g_plugin.v5->finalize(m_context);
    else if (m_version == 6)
        g_plugin.v6->finalize(m_context);
    else if (m_version == 7)
        g_plugin.v7->finalize(m_context);
    m_version = 0;
}

}  // namespace rankscope::injector

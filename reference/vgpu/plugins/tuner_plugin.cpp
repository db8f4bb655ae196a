// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/plugins/tuner_plugin.h"

#include <dlfcn.h>

#include <algorithm>

#include "reference/vgpu/plugins/plugin_library.h"
#include "reference/vgpu/plugins/tuner_abi.h"

namespace rankscope::vgpu {
namespace {

using namespace tuner_abi;

struct Plugin {
    const TunerV7* v7 = nullptr;
    const TunerV6* v6 = nullptr;  ///< the same as v5 then
    const TunerV5* v5 = nullptr;
    const TunerV4* v4 = nullptr;
    const TunerV3* v3 = nullptr;
    const TunerV2* v2 = nullptr;
    bool present() const { return v7 || v5 || v4 || v3 || v2; }
};

const Plugin& plugin() {
    static const Plugin loaded = [] {
        Plugin found;
        void* library = openPlugin("NCCL_TUNER_PLUGIN", "nccl-tuner");
        if (!library) return found;
        if (void* newest = dlsym(library, "ncclTunerPlugin_v7"))
            found.v7 = static_cast<const TunerV7*>(newest);
        else if (void* sixth = dlsym(library, "ncclTunerPlugin_v6"))
            found.v5 = found.v6 = static_cast<const TunerV6*>(sixth);
        else if (void* fifth = dlsym(library, "ncclTunerPlugin_v5"))
            found.v5 = static_cast<const TunerV5*>(fifth);
        else if (void* fourth = dlsym(library, "ncclTunerPlugin_v4"))
            found.v4 = static_cast<const TunerV4*>(fourth);
        else if (void* third = dlsym(library, "ncclTunerPlugin_v3"))
            found.v3 = static_cast<const TunerV3*>(third);
        else if (void* second = dlsym(library, "ncclTunerPlugin_v2"))
            found.v2 = static_cast<const TunerV2*>(second);
        return found;
    }();
    return loaded;
}

/// NCCL's constants as this cluster has its latencies. Changes to them are not taken up.
template <typename Constants>
Constants constantsOf(const Cluster& cluster) {
    constexpr HopKind kHops[] = {HopKind::nvlink, HopKind::pcie, HopKind::network};
    Constants constants{};
    for (int a = 0; a < kAlgorithms; a++) {
        for (int p = 0; p < kProtocols; p++) {
            const auto algorithm = static_cast<Algorithm>(a);
            const auto protocol = static_cast<Protocol>(p);
            constants.baseLatencies[a][p] = baseLatencyUs(algorithm, protocol) * nearScale(cluster);
            for (HopKind kind : kHops)
                constants.hwLatencies[static_cast<int>(kind)][a][p] =
                    hopLatencyUs(kind, algorithm, protocol) *
                    (kind == HopKind::network ? networkScale(cluster) : nearScale(cluster));
        }
    }
    return constants;
}

/// Version 2 names its choice; the newer ones make it the cheapest in the table.
void forceChoice(CostTable& table, int algorithm, int protocol) {
    if (algorithm < 0 || algorithm >= kAlgorithms || protocol < 0 || protocol >= kProtocols) return;
    if (table[static_cast<size_t>(algorithm)][static_cast<size_t>(protocol)] != kUnavailable)
        table[static_cast<size_t>(algorithm)][static_cast<size_t>(protocol)] = 0;
}

ncclResult_t askVersion2(const TunerV2& tuner, void* context, int function, size_t bytes, bool nvls, CostTable& table,
                         int* channels) {
    int algorithm = -1, protocol = -1;
    ncclResult_t result = tuner.getCollInfo(context, function, bytes, 0, nvls, 1, &algorithm, &protocol, channels);
    if (result == ncclSuccess) forceChoice(table, algorithm, protocol);
    return result;
}

/// From version 6 on: the plugin may make the chunks smaller, as NCCL bounds them by its buffers.
template <typename Interface>
ncclResult_t askChunkSize(const Interface& tuner, void* context, int function, size_t bytes, CollectiveCost& cost) {
    auto chunk = static_cast<size_t>(cost.chunkBytes);
    ncclResult_t result = tuner.getChunkSize(context, function, bytes, static_cast<int>(cost.algorithm),
                                             static_cast<int>(cost.protocol), cost.channels, &chunk);
    if (result == ncclSuccess && chunk > 0) cost.chunkBytes = std::min(cost.chunkBytes, static_cast<double>(chunk));
    return result;
}

}  // namespace

ncclResult_t Tuner::open(const Cluster& cluster, const CommShape& shape, uint64_t commId) {
    const Plugin& loaded = plugin();
    if (!loaded.present()) return ncclSuccess;
    ncclResult_t result;
    const int perNode = static_cast<int>(shape.smallestNode);
    NvlDomains domains{static_cast<int>(shape.nodes), perNode,
                       static_cast<int>(shape.size - (shape.nodes - 1) * shape.smallestNode)};
    if (loaded.v7) {
        auto constants = constantsOf<ConstantsV7>(cluster);
        result = loaded.v7->init(&m_context, commId, shape.size, shape.nodes, ignoreLog, &domains, &constants);
    } else if (loaded.v5) {
        auto constants = constantsOf<Constants>(cluster);
        result = loaded.v5->init(&m_context, commId, shape.size, shape.nodes, ignoreLog, &domains, &constants);
    } else if (loaded.v4) {
        result = loaded.v4->init(shape.size, shape.nodes, ignoreLog, &m_context);
    } else if (loaded.v3) {
        result = loaded.v3->init(shape.size, shape.nodes, ignoreLog, &m_context);
    } else {
        result = loaded.v2->init(shape.size, shape.nodes, ignoreLog, &m_context);
    }
    m_open = result == ncclSuccess;
    return result;
}

void Tuner::close() {
    if (!m_open) return;
    m_open = false;
    const Plugin& loaded = plugin();
    if (loaded.v7)
        loaded.v7->finalize(m_context);
    else if (loaded.v5)
        loaded.v5->finalize(m_context);
    else if (loaded.v4)
        loaded.v4->destroy(m_context);
    else if (loaded.v3)
        loaded.v3->destroy(m_context);
    else
        loaded.v2->destroy(m_context);
}

ncclResult_t Tuner::choose(const Cluster& cluster, const CommShape& shape, const AlgorithmRules& rules,
                           TransferKind function, double bytes, std::optional<CollectiveCost>& best) const {
    CostTable table = costTable(cluster, shape, rules, function, bytes);
    int channels = 0;
    if (m_open && shape.size > 1) {  // NCCL asks nobody about a lone rank
        const Plugin& loaded = plugin();
        auto** rows = reinterpret_cast<float**>(table.data());
        const int index = functionIndex(function);
        const auto size = static_cast<size_t>(bytes);
        ncclResult_t result;
        if (loaded.v7)
            result = loaded.v7->getCollInfo(m_context, index, size, 1, rows, kAlgorithms, kProtocols, 0, &channels);
        else if (loaded.v5)
            result = loaded.v5->getCollInfo(m_context, index, size, 1, rows, kAlgorithms, kProtocols, 0, &channels);
        else if (loaded.v4)
            result = loaded.v4->getCollInfo(m_context, index, size, 1, rows, kAlgorithms, kProtocols, 0, &channels);
        else if (loaded.v3)
            result = loaded.v3->getCollInfo(m_context, index, size, 1, rows, kAlgorithms, kProtocols, &channels);
        else
            result = askVersion2(*loaded.v2, m_context, index, size, cluster.nvls, table, &channels);
        if (result != ncclSuccess) return result;
    }
    best = cheapest(table, cluster, shape, function, bytes);
    if (best && channels > 0) best->channels = std::min(channels, cluster.maxChannels);
    if (!m_open || !best || shape.size == 1 || best->chunkBytes < 1) return ncclSuccess;
    const Plugin& loaded = plugin();
    const auto size = static_cast<size_t>(bytes);
    if (loaded.v7 && loaded.v7->getChunkSize)
        return askChunkSize(*loaded.v7, m_context, functionIndex(function), size, *best);
    if (loaded.v6 && loaded.v6->getChunkSize)
        return askChunkSize(*loaded.v6, m_context, functionIndex(function), size, *best);
    return ncclSuccess;
}

}  // namespace rankscope::vgpu

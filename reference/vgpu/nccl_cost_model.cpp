// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl_cost_model.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <vector>

namespace rankscope::vgpu {
namespace {

// Shares of the link a protocol reaches, and of alpha it costs per hop. The stated alpha is that of Simple.
constexpr double kBandwidth[kProtocols] = {0.35, 0.92, 1.0};
constexpr double kLatency[kProtocols] = {0.4, 0.6, 1.0};
// A tree's inner ranks send and receive twice over the same port in part of the pipeline.
constexpr double kTreeBandwidth = 0.85;

// Names NCCL knows; those without a model here are understood and never chosen.
const std::vector<std::string> kAlgorithmNames = {"tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"};
const std::vector<std::string> kProtocolNames = {"ll", "ll128", "simple"};
const std::vector<std::string> kFunctionNames = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};

int functionIndex(TransferKind function) {
    switch (function) {
        case TransferKind::broadcast: return 0;
        case TransferKind::reduce: return 1;
        case TransferKind::allGather: return 2;
        case TransferKind::reduceScatter: return 3;
        default: return 4;
    }
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + 1) parts.push_back(text.substr(begin, end - begin));
    parts.push_back(text.substr(begin));
    return parts;
}

bool parseMask(std::string list, const std::vector<std::string>& names, uint32_t& mask) {
    bool inverted = list.starts_with('^');
    if (inverted) list.erase(0, 1);
    mask = 0;
    for (const std::string& token : split(list, ',')) {
        auto it = std::find(names.begin(), names.end(), token);
        if (it == names.end()) return false;
        mask |= 1u << (it - names.begin());
    }
    if (inverted) mask = ~mask;
    return true;
}

bool parseList(const char* text, const std::vector<std::string>& names, uint32_t (&masks)[5]) {
    if (!text || !*text) return true;
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    bool first = true;
    for (const std::string& section : split(lower, ';')) {
        if (section.empty()) continue;
        size_t colon = section.find(':');
        uint32_t mask;
        if (!parseMask(colon == std::string::npos ? section : section.substr(colon + 1), names, mask)) return false;
        if (colon == std::string::npos) {
            if (!first) return false;    // only the first item may leave the function out
            for (uint32_t& each : masks) each = mask;
        } else {
            if (first)
                for (uint32_t& each : masks) each = ~0u;
            auto function = std::find(kFunctionNames.begin(), kFunctionNames.end(), section.substr(0, colon));
            if (function == kFunctionNames.end()) return false;
            masks[function - kFunctionNames.begin()] = mask;
        }
        first = false;
    }
    return true;
}

uint32_t hopsOf(TransferKind function, uint32_t ranks, Algorithm algorithm) {
    if (algorithm == Algorithm::tree) return 2 * static_cast<uint32_t>(std::bit_width(ranks - 1));
    return function == TransferKind::allReduce ? 2 * (ranks - 1) : ranks - 1;
}

int channelsFor(double bytes, Protocol protocol) {
    double perChannel = protocol == Protocol::ll ? 8192 : 65536;
    int channels = 1;
    while (channels < 16 && bytes > perChannel * channels) channels *= 2;
    return channels;
}

}  // namespace

const char* nameOf(Algorithm algorithm) { return algorithm == Algorithm::tree ? "TREE" : "RING"; }
const char* nameOf(Protocol protocol) {
    static const char* const names[kProtocols] = {"LL", "LL128", "SIMPLE"};
    return names[static_cast<int>(protocol)];
}

bool AlgorithmRules::parse(const char* algorithms, const char* protocols) {
    return parseList(algorithms, kAlgorithmNames, m_algorithms) && parseList(protocols, kProtocolNames, m_protocols);
}

bool AlgorithmRules::allows(TransferKind function, Algorithm algorithm, Protocol protocol) const {
    int index = functionIndex(function);
    if (algorithm == Algorithm::tree && function != TransferKind::allReduce) return false;
    return (m_algorithms[index] >> static_cast<int>(algorithm) & 1) && (m_protocols[index] >> static_cast<int>(protocol) & 1);
}

double busBytesOf(TransferKind function, uint32_t ranks, double bytes) {
    double share = static_cast<double>(ranks - 1) / ranks;
    switch (function) {
        case TransferKind::allReduce: return 2 * share * bytes;
        case TransferKind::allGather:
        case TransferKind::reduceScatter:
        case TransferKind::allToAll:
        case TransferKind::gather:
        case TransferKind::scatter: return share * bytes;
        case TransferKind::broadcast:
        case TransferKind::reduce:
        case TransferKind::p2p: break;
    }
    return bytes;
}

CollectiveCost costOf(const Cluster& cluster, const CommShape& shape, TransferKind function, double bytes, Algorithm algorithm,
                      Protocol protocol) {
    CollectiveCost cost;
    int p = static_cast<int>(protocol);
    cost.algorithm = algorithm;
    cost.protocol = protocol;
    cost.channels = channelsFor(bytes, protocol);
    double alphaNs = 1000 * (shape.nodes > 1 ? std::max(cluster.intra.alphaUs, cluster.inter.alphaUs) : cluster.intra.alphaUs);
    cost.latencyNs = static_cast<int64_t>(hopsOf(function, shape.size, algorithm) * alphaNs * kLatency[p]);
    cost.busBytes = busBytesOf(function, shape.size, bytes);
    cost.efficiency = kBandwidth[p] * (algorithm == Algorithm::tree ? kTreeBandwidth : 1.0);
    return cost;
}

std::optional<CollectiveCost> chooseCollective(const Cluster& cluster, const CommShape& shape, const AlgorithmRules& rules,
                                               TransferKind function, double bytes) {
    double ceiling = cluster.intra.gbps;
    if (shape.nodes > 1) ceiling = std::min(ceiling, shape.smallestNode * cluster.inter.gbps);
    std::optional<CollectiveCost> best;
    double bestNs = 0;
    for (Algorithm algorithm : {Algorithm::ring, Algorithm::tree}) {
        for (Protocol protocol : {Protocol::simple, Protocol::ll128, Protocol::ll}) {
            if (!rules.allows(function, algorithm, protocol)) continue;
            CollectiveCost cost = costOf(cluster, shape, function, bytes, algorithm, protocol);
            double ns = static_cast<double>(cost.latencyNs) + cost.busBytes / (ceiling * cost.efficiency);
            if (best && ns >= bestNs) continue;
            best = cost;
            bestNs = ns;
        }
    }
    return best;
}

}  // namespace rankscope::vgpu

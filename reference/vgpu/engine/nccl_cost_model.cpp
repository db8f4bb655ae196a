// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/nccl_cost_model.h"

#include <algorithm>
#include <bit>

namespace rankscope::vgpu {
namespace {

// Shares of the link a protocol reaches: LL sends a flag with every 4 bytes, LL128 8 bytes of flags in every 128,
// Simple none.
constexpr double kBandwidth[kProtocols] = {0.5, 0.9375, 1.0};
// Shares of alpha a hop costs; the stated alpha is that of Simple, which needs memory fences. Between what NCCL's own
// model says of NVLink (LL 0.6 us of 3.4) and of the overhead that all protocols have in common.
constexpr double kLatency[kProtocols] = {0.4, 0.6, 1.0};
// A tree's inner ranks send and receive twice over the same port in part of the pipeline.
constexpr double kTreeBandwidth = 0.85;
// NCCL's model of NVLink SHARP on Hopper, and of PAT.
constexpr double kNvlsBandwidth = 0.85, kPatBandwidth = 0.75;
// NVLS synchronises all ranks through the switch: an all-reduce is a reduce-scatter and an all-gather of two hops each.
constexpr uint32_t kNvlsHops = 2;

uint32_t log2Ceil(uint32_t value) {
    return value > 1 ? static_cast<uint32_t>(std::bit_width(value - 1)) : 0;
}

double alphaNs(const Cluster& cluster, bool acrossNodes) {
    return 1000 * (acrossNodes ? std::max(cluster.intra.alphaUs, cluster.inter.alphaUs) : cluster.intra.alphaUs);
}

/// Hops times alpha of the slowest link class they take.
double latencyNs(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm) {
    const uint32_t halves = function == TransferKind::allReduce ? 2 : 1;
    const double hop = alphaNs(cluster, shape.nodes > 1);
    switch (algorithm) {
        case Algorithm::tree:
            return 2 * log2Ceil(shape.size) * hop;
        case Algorithm::nvls:
            return halves * kNvlsHops * alphaNs(cluster, false);
        case Algorithm::nvlsTree:
            return halves * kNvlsHops * alphaNs(cluster, false) + 2 * log2Ceil(shape.nodes) * hop;
        case Algorithm::pat:
            return log2Ceil(shape.size) * hop;
        default:
            return halves * (shape.size - 1) * hop;
    }
}

double bandwidthShare(Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::tree:
        case Algorithm::nvlsTree:
            return kTreeBandwidth;
        case Algorithm::nvls:
            return kNvlsBandwidth;
        case Algorithm::pat:
            return kPatBandwidth;
        default:
            return 1;
    }
}

int channelsFor(double bytes, Protocol protocol) {
    double perChannel = protocol == Protocol::ll ? 8192 : 65536;
    int channels = 1;
    while (channels < kMaxChannels && bytes > perChannel * channels) channels *= 2;
    return channels;
}

/// A ring's chunk: the rank's share of the buffer in each channel, bounded by the channel's buffers (NCCL's defaults:
/// half of 4 MiB for Simple, one of eight steps for LL and LL128, without their flags).
double chunkBytesOf(const CollectiveCost& cost, uint32_t ranks, TransferKind function, double bytes) {
    const bool chunked = function == TransferKind::allReduce || function == TransferKind::allGather ||
                         function == TransferKind::reduceScatter;
    if (cost.algorithm != Algorithm::ring || !chunked) return 0;
    constexpr double kLargest[kProtocols] = {32768, 576000, 2097152};
    return std::min(bytes / ranks, kLargest[static_cast<int>(cost.protocol)] * cost.channels);
}

double predictedNs(const Cluster& cluster, const CommShape& shape, const CollectiveCost& cost) {
    double ceiling = cluster.intra.gbps;
    if (shape.nodes > 1) ceiling = std::min(ceiling, shape.smallestNode * cluster.inter.gbps);
    return static_cast<double>(cost.latencyNs) + cost.busBytes / (ceiling * cost.efficiency);
}

}  // namespace

double busBytesOf(TransferKind function, uint32_t ranks, double bytes) {
    double share = static_cast<double>(ranks - 1) / ranks;
    switch (function) {
        case TransferKind::allReduce:
            return 2 * share * bytes;
        case TransferKind::allGather:
        case TransferKind::reduceScatter:
        case TransferKind::allToAll:
        case TransferKind::gather:
        case TransferKind::scatter:
            return share * bytes;
        case TransferKind::broadcast:
        case TransferKind::reduce:
        case TransferKind::p2p:
            break;
    }
    return bytes;
}

bool isAvailable(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm,
                 Protocol protocol) {
    const bool allReduce = function == TransferKind::allReduce;
    const bool chunked = function == TransferKind::allGather || function == TransferKind::reduceScatter;
    if (protocol != Protocol::simple && algorithm != Algorithm::ring && algorithm != Algorithm::tree) return false;
    switch (algorithm) {
        case Algorithm::ring:
            return true;
        case Algorithm::tree:
            return allReduce;
        case Algorithm::nvls:
            return cluster.nvls && shape.nodes == 1 && (allReduce || chunked);
        case Algorithm::nvlsTree:
            return cluster.nvls && shape.nodes > 1 && allReduce;
        case Algorithm::pat:
            return chunked && shape.nodes == shape.size && shape.size > 1;  // one GPU per node only
        default:
            return false;
    }
}

CollectiveCost costOf(const Cluster& cluster, const CommShape& shape, TransferKind function, double bytes,
                      Algorithm algorithm, Protocol protocol) {
    CollectiveCost cost;
    int p = static_cast<int>(protocol);
    cost.algorithm = algorithm;
    cost.protocol = protocol;
    cost.channels = std::min(channelsFor(bytes, protocol), cluster.maxChannels);
    cost.latencyNs = static_cast<int64_t>(latencyNs(cluster, shape, function, algorithm) * kLatency[p]);
    // The switch reduces: a rank sends its buffer once and gets it back once.
    bool inSwitch = algorithm == Algorithm::nvls && function == TransferKind::allReduce;
    cost.busBytes = inSwitch ? bytes : busBytesOf(function, shape.size, bytes);
    cost.efficiency = kBandwidth[p] * bandwidthShare(algorithm) * cluster.channelBandwidthShare();
    cost.chunkBytes = chunkBytesOf(cost, shape.size, function, bytes);
    return cost;
}

CostTable costTable(const Cluster& cluster, const CommShape& shape, const AlgorithmRules& rules, TransferKind function,
                    double bytes) {
    CostTable table;
    for (int a = 0; a < kAlgorithms; a++) {
        for (int p = 0; p < kProtocols; p++) {
            auto algorithm = static_cast<Algorithm>(a);
            auto protocol = static_cast<Protocol>(p);
            bool allowed = isAvailable(cluster, shape, function, algorithm, protocol) &&
                           rules.allows(function, algorithm, protocol);
            table[a][p] =
                allowed ? static_cast<float>(predictedNs(cluster, shape,
                                                         costOf(cluster, shape, function, bytes, algorithm, protocol)) /
                                             1000)
                        : kUnavailable;
        }
    }
    return table;
}

std::optional<CollectiveCost> cheapest(const CostTable& table, const Cluster& cluster, const CommShape& shape,
                                       TransferKind function, double bytes) {
    std::optional<CollectiveCost> best;
    float bestUs = 0;
    for (int a = 0; a < kAlgorithms; a++) {
        for (int p = 0; p < kProtocols; p++) {
            auto algorithm = static_cast<Algorithm>(a);
            auto protocol = static_cast<Protocol>(p);
            if (table[a][p] < 0 || (best && table[a][p] >= bestUs) ||
                !isAvailable(cluster, shape, function, algorithm, protocol))
                continue;
            best = costOf(cluster, shape, function, bytes, algorithm, protocol);
            bestUs = table[a][p];
        }
    }
    return best;
}

std::optional<CollectiveCost> chooseCollective(const Cluster& cluster, const CommShape& shape,
                                               const AlgorithmRules& rules, TransferKind function, double bytes) {
    return cheapest(costTable(cluster, shape, rules, function, bytes), cluster, shape, function, bytes);
}

}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/nccl_cost_model.h"

#include <algorithm>

#include "reference/vgpu/engine/nccl_world.h"

namespace rankscope::vgpu {
namespace {

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

double predictedNs(const Cluster& cluster, const CommShape& shape, TransferKind function, const CollectiveCost& cost) {
    const double rate = linkGbps(cluster, shape, function, cost.algorithm) * cost.efficiency;
    return static_cast<double>(cost.latencyNs) + cost.busBytes / rate;
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
    if (isMessages(function)) return algorithm == Algorithm::ring && protocol == Protocol::simple;
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
    cost.algorithm = algorithm;
    cost.protocol = protocol;
    cost.channels = std::min(channelsFor(bytes, protocol), cluster.maxChannels);
    cost.latencyNs = static_cast<int64_t>(1000 * latencyUs(cluster, shape, function, algorithm, protocol, bytes));
    cost.busBytes = busBytesOf(function, shape.size, bytes);
    cost.efficiency =
        bandwidthShare(cluster, shape, function, algorithm, protocol, bytes) * cluster.channelBandwidthShare();
    cost.networkShare = networkShare(cluster, shape, function, algorithm);
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
                           rules.allows(function, algorithm, protocol) &&
                           (protocol != Protocol::ll128 || !cluster.intra.pcie || rules.namesProtocols(function));
            table[a][p] =
                allowed ? static_cast<float>(predictedNs(cluster, shape, function,
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
    if (best) best = inWorld(cluster, shape, function, bytes, *best);
    return best;
}

std::optional<CollectiveCost> chooseCollective(const Cluster& cluster, const CommShape& shape,
                                               const AlgorithmRules& rules, TransferKind function, double bytes) {
    return cheapest(costTable(cluster, shape, rules, function, bytes), cluster, shape, function, bytes);
}

}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/nccl_tuning.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rankscope::vgpu {
namespace {

using ByProtocol = double[kProtocols];  // LL, LL128, Simple

struct Latencies {
    ByProtocol base, hops[3];  // us; hops over NVLink, PCIe and the network
};

constexpr Latencies kTree{{6.8, 14.0, 8.4}, {{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}}};
constexpr Latencies kRing{{6.6, 14.0, 8.4}, {{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}}};
constexpr Latencies kNvls{{0, 0, 0}, {{0, 0, 25}, {0, 0, 0}, {0, 0, 18}}};
constexpr Latencies kNvlsTree{{0, 0, 0}, {{0, 0, 25}, {0, 0, 0}, {0, 0, 20.9}}};
constexpr Latencies kPat{{8, 8, 8}, {{0, 0, 4}, {0, 0, 4}, {0, 0, 14}}};

/// PAT's hops overlap, and a part of its latency still grows with the ranks.
constexpr double kPatHop = 1 / 3.5, kPatPerRankUs = 2.8;
/// The host posts what a hop inside a node will hand on to the network: 1 us on Intel's, three posts for Simple.
constexpr ByProtocol kPostUs = {1, 1, 3};
/// A ring's all-reduce by Simple takes longer over nodes once a channel's part of a rank's share has some bytes.
constexpr double kPlateau = 1.4, kPlateauBytes = 64;
/// A message waits for those that the same rank posts before it, 0.3 of a hop for each: NCCL's all-to-alls of 8 A100
/// in two nodes and of 16 H20 (nccl-tests) start 1.5 to 3 times as late as their all-reduces.
constexpr double kPerMessage = 0.3;

constexpr ByProtocol kRingShare = {0.5, 0.92, 1};
constexpr double kTreeShare = 0.92, kTreeLl = 1 / 3.8, kTreeLl128 = 7.0 / 9, kTreeLl128OverNodes = 120.0 / 128;
constexpr double kPatShare = 0.75;
/// The SMs' polling for flags holds LL: NCCL has 39, 87.7, 141 and 282 GB/s inside a node of Volta, Ampere, Hopper and
/// Blackwell, 0.26 to 0.31 of their NVLinks' rates; between nodes 39 for two and 20.4 for more on Intel's hosts.
constexpr double kLlOfNvlink = 0.3, kLlTwoNodesGbps = 39, kLlNodesGbps = 20.4;
/// NVLink SHARP: an all-reduce of 8 H100 reaches 472 to 480 of 450 GB/s of bus bandwidth, since the switch adds up.
constexpr double kNvlsOfNvlink = 1.05;

/// A tree's bandwidth by the size, from 64 bytes on in powers of two (treeCorrectionFactor).
constexpr int kCorrections = 24;
constexpr double kTreeCorrection[kProtocols][kCorrections] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}};

/// Channels and chunks grow with a message, so that its rate does, until its bytes take many hops' time: by
/// 1 / (1 + (hops' time / bytes' time)^kRampPower), of as many hops of a ring by the same protocol. The hops and the
/// power are those with which nccl-tests tables of 8 A100, H100, V100 and GH200, and of 2 to 8 such nodes, come out
/// nearest; grouped messages start at once with all their chunks.
constexpr double kRampHopsNear = 1, kRampHopsNetwork = 3, kRampOfMessages = 0.1, kRampPower = 0.8;

int index(Protocol protocol) {
    return static_cast<int>(protocol);
}

const Latencies& latenciesOf(Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::tree:
            return kTree;
        case Algorithm::nvls:
            return kNvls;
        case Algorithm::nvlsTree:
            return kNvlsTree;
        case Algorithm::pat:
            return kPat;
        default:
            return kRing;
    }
}

HopKind nearKind(const Cluster& cluster) {
    return cluster.intra.pcie ? HopKind::pcie : HopKind::nvlink;
}

double nearHopUs(const Cluster& cluster, Algorithm algorithm, Protocol protocol) {
    return hopLatencyUs(nearKind(cluster), algorithm, protocol) * nearScale(cluster);
}

double networkHopUs(const Cluster& cluster, Algorithm algorithm, Protocol protocol) {
    return hopLatencyUs(HopKind::network, algorithm, protocol) * networkScale(cluster);
}

uint32_t log2Ceil(uint32_t value) {
    return value > 1 ? static_cast<uint32_t>(std::bit_width(value - 1)) : 0;
}

double ringUs(const Cluster& cluster, const CommShape& shape, TransferKind function, Protocol protocol) {
    const uint32_t halves = function == TransferKind::allReduce ? 2 : 1;
    const double hops = halves * (shape.size - 1), far = shape.nodes > 1 ? halves * (shape.nodes - 1) : 0;
    double near = nearHopUs(cluster, Algorithm::ring, protocol);
    if (shape.nodes > 1) near = std::max(near, kPostUs[index(protocol)]);
    // With one rank per node nothing hides a hop's latency: it is a tree's.
    const Algorithm overNetwork = shape.nodes == shape.size ? Algorithm::tree : Algorithm::ring;
    return (hops - far) * near + far * networkHopUs(cluster, overNetwork, protocol);
}

double treeUs(const Cluster& cluster, const CommShape& shape, Protocol protocol) {
    const double perNode = static_cast<double>(shape.size) / shape.nodes;
    return 2 * ((perNode - 1) * nearHopUs(cluster, Algorithm::tree, protocol) +
                log2Ceil(shape.nodes) * networkHopUs(cluster, Algorithm::tree, protocol));
}

double patUs(const Cluster& cluster, const CommShape& shape) {
    return log2Ceil(shape.nodes) * kPatHop * networkHopUs(cluster, Algorithm::pat, Protocol::simple) +
           shape.size * kPatPerRankUs * networkScale(cluster);
}

double nvlsGain(const Cluster& cluster) {
    return kNvlsOfNvlink / cluster.intra.reached;
}

double llShare(const Cluster& cluster, const CommShape& shape, double share, double linkRate) {
    if (shape.nodes == 1 && cluster.intra.pcie) return share;  // slower than any GPU polls
    const double most = shape.nodes == 1   ? kLlOfNvlink * cluster.intra.gbps
                        : shape.nodes == 2 ? kLlTwoNodesGbps
                                           : kLlNodesGbps;
    return std::min(share, most / linkRate);
}

double treeShare(const CommShape& shape, Protocol protocol, double bytes) {
    double share = kTreeShare;
    if (protocol == Protocol::ll) share *= kTreeLl;
    if (protocol == Protocol::ll128) share *= shape.nodes == 1 ? kTreeLl128 : kTreeLl128OverNodes;
    const auto lines = static_cast<uint64_t>(bytes) >> 6;
    const int step = std::bit_width(lines) - 1;
    return step >= 0 && step < kCorrections ? share * kTreeCorrection[index(protocol)][step] : share;
}

/// Slows what has too few bytes to fill the channels.
double ramp(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm,
            Protocol protocol, double bytesUs) {
    double hopsUs = shape.nodes > 1 ? kRampHopsNetwork * networkHopUs(cluster, Algorithm::ring, protocol)
                                    : kRampHopsNear * nearHopUs(cluster, Algorithm::ring, protocol);
    if (algorithm == Algorithm::pat) hopsUs *= kPatHop;
    if (isMessages(function)) hopsUs *= kRampOfMessages;
    return bytesUs > 0 ? 1 / (1 + std::pow(hopsUs / bytesUs, kRampPower)) : 1;
}

}  // namespace

bool isMessages(TransferKind function) {
    return function == TransferKind::allToAll || function == TransferKind::gather ||
           function == TransferKind::scatter || function == TransferKind::p2p;
}

double baseLatencyUs(Algorithm algorithm, Protocol protocol) {
    return latenciesOf(algorithm).base[index(protocol)];
}

double hopLatencyUs(HopKind kind, Algorithm algorithm, Protocol protocol) {
    return latenciesOf(algorithm).hops[static_cast<int>(kind)][index(protocol)];
}

double nearScale(const Cluster& cluster) {
    return cluster.intra.alphaUs / hopLatencyUs(nearKind(cluster), Algorithm::ring, Protocol::simple);
}

double networkScale(const Cluster& cluster) {
    return cluster.inter.alphaUs / hopLatencyUs(HopKind::network, Algorithm::ring, Protocol::simple);
}

double latencyUs(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm,
                 Protocol protocol, double bytes) {
    if (shape.size < 2) return 0;
    const double baseUs = baseLatencyUs(algorithm, protocol) * nearScale(cluster);
    if (isMessages(function)) return baseUs + messageUs(cluster, shape.nodes == 1, shape.size - 1);
    switch (algorithm) {
        case Algorithm::tree:
            return baseUs + treeUs(cluster, shape, protocol);
        case Algorithm::nvls:
            return baseUs + nearHopUs(cluster, algorithm, protocol);
        case Algorithm::nvlsTree:
            return baseUs + nearHopUs(cluster, algorithm, protocol) +
                   2 * log2Ceil(shape.nodes) * networkHopUs(cluster, algorithm, protocol);
        case Algorithm::pat:
            return baseUs + patUs(cluster, shape);
        default:
            break;
    }
    const bool plateau = protocol == Protocol::simple && shape.nodes > 1 && function == TransferKind::allReduce &&
                         bytes >= kPlateauBytes * cluster.maxChannels * shape.size;
    return (baseUs + ringUs(cluster, shape, function, protocol)) * (plateau ? kPlateau : 1);
}

double messageUs(const Cluster& cluster, bool sameNode, size_t messages) {
    const double hopUs = sameNode ? cluster.intra.alphaUs : std::max(cluster.intra.alphaUs, cluster.inter.alphaUs);
    return hopUs * (1 + kPerMessage * (static_cast<double>(std::max<size_t>(messages, 1)) - 1));
}

double bandwidthShare(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm,
                      Protocol protocol, double bytes) {
    const double linkRate = linkGbps(cluster, shape, function, algorithm);
    double share = kRingShare[index(protocol)];
    if (algorithm == Algorithm::tree) share = treeShare(shape, protocol, bytes);
    if (algorithm == Algorithm::pat) share = kPatShare;
    if (algorithm == Algorithm::nvls || algorithm == Algorithm::nvlsTree)
        share = function == TransferKind::allReduce ? nvlsGain(cluster) : 1;
    if (protocol == Protocol::ll) share = llShare(cluster, shape, share, linkRate);
    return share * ramp(cluster, shape, function, algorithm, protocol, bytes / 1000 / (linkRate * share));
}

double networkShare(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm) {
    if (shape.nodes < 2) return 0;
    const double others = shape.size - 1, away = shape.size - shape.smallestNode;
    // Of two nodes each sends its sum once, where a ring's bytes pass twice.
    const double crossings = shape.nodes == 2 ? 0.5 : 1;
    if (function == TransferKind::allToAll) return shape.smallestNode * away / others;  // over each rank's own NIC
    if (function == TransferKind::gather || function == TransferKind::scatter) return away / others;
    if (function != TransferKind::allReduce) return 1;
    if (algorithm == Algorithm::tree) return crossings;
    return algorithm == Algorithm::nvlsTree ? crossings * nvlsGain(cluster) : 1;
}

double linkGbps(const Cluster& cluster, const CommShape& shape, TransferKind function, Algorithm algorithm) {
    const double near = cluster.intra.reachedGbps(), crossing = networkShare(cluster, shape, function, algorithm);
    return crossing > 0 ? std::min(near, shape.smallestNode * cluster.inter.reachedGbps() / crossing) : near;
}

}  // namespace rankscope::vgpu

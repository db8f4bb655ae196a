// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/engine/nccl_world.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace rankscope::vgpu {
namespace {

/// What is drawn: streams of numbers that know nothing of each other.
enum Draw : uint64_t { kSpread = 1, kOwn = 3, kKink, kKinkSize, kKinkHeight, kReached, kBeside };

/// Standard deviation of ln(measured / model), and how it varies from machine to machine: the mean |ln| of published
/// tables that were told their makers' rates is 0.11 in the median of one node's and 0.25 of several nodes', and twice
/// that in one machine of ten (reference/README.md). A normal deviation is 1.25 times its mean.
constexpr double kNear = 0.14, kFar = 0.31, kSpreadOfSpread = 0.55;
/// Sizes so many powers of two apart know nothing of each other.
constexpr double kOctaves = 3;
/// Between these powers of two the deviation falls to this part. Of tables told their makers' rates the median |ln| is
/// 0.12 at 16 to 64 MiB in one node and 0.19 over nodes, 0.08 and 0.19 at 64 to 256 MiB, 0.05 and 0.12 beyond, of which
/// the spread of what links reach, drawn by itself, makes 0.03 and 0.06 (reference/README.md). Where one machine ran
/// two algorithms with the largest messages their ratio is off by 0.15 to 0.29 (NVIDIA/nccl 1368, 1801).
constexpr double kFadeFrom = 26, kFadeTo = 30, kFadePart = 0.45;
/// 5 of 39 tables of one node and 15 of 44 of several nodes have a kink; a kink takes 1.5 to 6 times, 3 in the median.
constexpr double kKinksNear = 0.13, kKinksFar = 0.34, kKinkFactor = 3, kKinkSpread = 0.35;
constexpr double kFirstKinkOctave = 15, kKinkOctaves = 11;  // 32 KiB to 64 MiB

/// The most that healthy links take of what the model says at the least share that they reach, kinks aside, from 1 MiB
/// on: of published tables no size that bytes decide takes more than 1.14 times that in one node, and over nodes 1.9 up
/// to 16 MiB, 1.5 at 32, 1.3 at 64 and 1.24 beyond. Of 1 MiB nine in ten are within 1.67, over nodes 3.1. What is later
/// than all of them is called a broken link there, too.
struct Latest {
    double octave, times;
};
constexpr Latest kLatestNear[]{{20, 1.67}, {22, 1.14}};
constexpr Latest kLatestFar[]{{20, 3.1}, {22, 1.9}, {24, 1.9}, {25, 1.5}, {26, 1.3}, {27, 1.24}};

struct Reach {
    double low, high;
};
/// Shares of the makers' rates that links reach: what nccl-tests reach (analyzer/costs/reached_share.cpp) and a little
/// more either way, since most machines are not published. Of PCIe the maker's rate is that of a whole link, of which a
/// scenario's may be a part already.
constexpr Reach kNvlink{0.72, 0.85}, kPcie{0.45, 0.76}, kNetwork{0.73, 0.97};
/// What compute leaves transfers between PCIe cards, whose copies take 1.5 to 1.8 times as long beside it.
constexpr Reach kBesideCompute{1 / 1.8, 1 / 1.5};

double uniform(uint64_t seed, uint64_t a, uint64_t b = 0, uint64_t c = 0) {
    const uint64_t bits = mixHash(mixHash(mixHash(mixHash(seed) ^ a) ^ b) ^ c);
    return static_cast<double>(bits >> 11) * (1.0 / 9007199254740992.0);
}

/// Deviation 1 at each place of a line on which numbers a unit apart know nothing of each other.
double smoothNoise(uint64_t seed, uint64_t draw, uint64_t key, double place) {
    const double first = std::floor(place);
    const auto knot = static_cast<uint64_t>(static_cast<int64_t>(first) + 1000);
    const double to = (1 - std::cos(M_PI * (place - first))) / 2, from = 1 - to;
    return (from * normalNoise(seed, draw, key, knot) + to * normalNoise(seed, draw, key, knot + 1)) /
           std::sqrt(from * from + to * to);
}

double kinkFactor(uint64_t world, uint64_t key, double share, double octave) {
    if (uniform(world, kKink, key) >= share) return 1;
    const double first = std::floor(kFirstKinkOctave + kKinkOctaves * uniform(world, kKinkSize, key));
    if (octave < first - 0.5 || octave >= first + 0.5) return 1;
    return kKinkFactor * std::exp(kKinkSpread * normalNoise(world, kKinkHeight, key, 0));
}

double latestAt(std::span<const Latest> points, double octave) {
    if (octave < points.front().octave) return std::numeric_limits<double>::infinity();
    const auto next = std::ranges::upper_bound(points, octave, {}, &Latest::octave);
    if (next == points.end()) return points.back().times;
    const Latest& before = *(next - 1);
    return std::lerp(before.times, next->times, (octave - before.octave) / (next->octave - before.octave));
}

Reach reachOf(const LinkClass& intra) {
    if (!intra.pcie) return kNvlink;
    const double whole = slowestPcieLink(intra.gbps).gbps() / intra.gbps;
    return {std::min(1.0, kPcie.low * whole), std::min(1.0, kPcie.high * whole)};
}

void drawReached(LinkClass& link, Reach reach, double place) {
    if (link.reached == 1) link.reached = reach.low + place * (reach.high - reach.low);
}

}  // namespace

void drawLinks(Cluster& cluster) {
    if (cluster.world == 0) return;
    drawReached(cluster.intra, reachOf(cluster.intra), uniform(cluster.world, kReached, 0));
    drawReached(cluster.inter, kNetwork, uniform(cluster.world, kReached, 1));
    if (cluster.intra.pcie && cluster.intra.besideCompute == 1)
        cluster.intra.besideCompute =
            kBesideCompute.low + (kBesideCompute.high - kBesideCompute.low) * uniform(cluster.world, kBeside);
}

double worldFactor(uint64_t world, const CommShape& shape, TransferKind function, Algorithm algorithm,
                   Protocol protocol, double bytes, double overLeast) {
    if (world == 0 || bytes <= 0) return 1;
    const bool far = shape.nodes > 1;
    const double spread = (far ? kFar : kNear) * std::exp(kSpreadOfSpread * normalNoise(world, kSpread, far, 0));
    const auto operation = (uint64_t{shape.nodes} << 32) | static_cast<uint64_t>(function);
    const uint64_t choice =
        (operation << 16) | (static_cast<uint64_t>(algorithm) << 8) | static_cast<uint64_t>(protocol);
    const double octave = std::log2(bytes);
    const double faded = 1 - (1 - kFadePart) * std::clamp((octave - kFadeFrom) / (kFadeTo - kFadeFrom), 0.0, 1.0);
    // Nothing published tells what two choices have in common: they know nothing of each other.
    const double residual = smoothNoise(world, kOwn, choice, octave / kOctaves);
    const double latest =
        std::max(1.0, overLeast) * latestAt(far ? std::span<const Latest>(kLatestFar) : kLatestNear, octave);
    return std::min(std::exp(spread * faded * residual), latest) *
           kinkFactor(world, choice, far ? kKinksFar : kKinksNear, octave);
}

CollectiveCost inWorld(const Cluster& cluster, const CommShape& shape, TransferKind function, double bytes,
                       CollectiveCost cost) {
    if (cluster.world == 0 || shape.size < 2) return cost;
    const double overLeast =
        shape.nodes > 1 ? cluster.inter.reached / kNetwork.low : cluster.intra.reached / reachOf(cluster.intra).low;
    const double factor = worldFactor(cluster.world, shape, function, cost.algorithm, cost.protocol, bytes, overLeast);
    cost.latencyNs = static_cast<int64_t>(static_cast<double>(cost.latencyNs) * factor);
    constexpr double kLargest = 1e15;  // bytes: no ramp is left
    const double told = std::min(1 / cluster.intra.reached, shape.nodes > 1 ? 1 / cluster.inter.reached : 1e9);
    const double most = told * bandwidthShare(cluster, shape, function, cost.algorithm, cost.protocol, kLargest) *
                        cluster.channelBandwidthShare();
    cost.efficiency = std::min(cost.efficiency / factor, std::max(cost.efficiency, most));
    return cost;
}

}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/costs/nccl_formulas.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "analyzer/costs/reached_share.h"
#include "analyzer/facts/operation.h"

namespace rankscope::costs {

using store::Algorithm;
using store::Op;
using store::Protocol;

namespace {

// us, as NCCL's table has them by protocol: LL, LL128, Simple.
using ByProtocol = std::array<double, 3>;
struct Latencies {
    ByProtocol base, nvlink, pcie, network;  // beside the hops; a hop
};
constexpr Latencies kTree{{6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}};
constexpr Latencies kRing{{6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}};
constexpr double kNvlsUs = 25, kNvlsTreeNetworkUs = 20.9;             // NCCL's table, NVLS over NVLink and the network
constexpr double kPatBase = 8, kPatPerRank = 2.8, kPatHop = 1 / 3.5;  // NCCL's; PAT's hops overlap
/// A ring's all-reduce by Simple takes this many times its latency over nodes, but for the smallest messages.
constexpr double kPlateau = 1.4;
/// A message waits for those posted before it, this part of a hop for each.
constexpr double kPerMessage = 0.3;
/// NCCL's figures are of other machines: by a fifth latencies of the same links differ from what they give with the
/// alpha that explains the smallest messages (nccl-tests tables of 41 nodes with V100, A100, H100, GH200 and GeForce).
constexpr double kOtherMachine = 0.2;

/// The SMs' polling for flags holds LL: NCCL has 0.26 to 0.31 of an NVLink's rate, tables down to 0.2; between nodes 39
/// GB/s for two and 20.4 for more on Intel's hosts, 22.5 and 19 on AMD's, 45 and 35 with Hopper.
constexpr Range kLlOfNvlink{0.2, 0.4}, kLlOfSlowLink{0.4, 0.5}, kLlTwoNodes{22.5, 45}, kLlNodes{19, 35};
constexpr Range kTreeLl{0.2, 0.3};                                        // NCCL: 1 / 3.8
constexpr Range kLl128{0.85, 120.0 / 128}, kTreeLl128OneNode{0.7, 0.86};  // NCCL: 0.92, and 7 / 9 in a node's tree
constexpr Range kTreeShare{0.8, 0.92}, kPatShare{0.7, 0.8};               // NCCL: 0.92 (0.78 unless split), 0.75
constexpr double kTreeMost = 0.92;                                        // NCCL: of Simple's rate
constexpr Range kTwoNodes{0.8, 1};                                        // of what a tree of two nodes can at most
constexpr Range kInSwitch{0.95, 1.4};  // NVLS: 1.05 of a port's nominal rate, which rings reach 0.75 to 0.8 of
/// A tree's bandwidth by the size, from 64 bytes on in powers of two (treeCorrectionFactor), as well as it is known.
constexpr std::array<std::array<double, 24>, 3> kTreeCorrection{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};
constexpr double kCorrectionKnown = 0.1;
/// A message's rate grows with it until its bytes take many hops' time: it reaches 1 / (1 + (hops' time / bytes'
/// time)^kRampPower). So many hops explain the same tables best, and half as many more or less nearly as well.
constexpr double kRampHopsNear = 1, kRampHopsNetwork = 3, kRampPower = 0.8;
constexpr Range kRampKnown{0.5, 1.5};

/// Holds an error that is the same up to some bytes, falls from there on with their logarithm, and is the same again.
struct ErrorBySize {
    double small, fromBytes, large, toBytes;
    double at(double bytes) const {
        const double part = std::log2(std::max(bytes, 1.0) / fromBytes) / std::log2(toBytes / fromBytes);
        return std::lerp(small, large, std::clamp(part, 0.0, 1.0));
    }
};
constexpr double kMiB = 1 << 20;

/// Nine in ten sizes of 18 tables of one node and 24 of several are off by less: |ln| 0.51 at 1 to 4 MiB, 0.37 at 4 to
/// 16, 0.27 at 16 to 64, 0.18 at 64 to 256, 0.14 beyond; over nodes up to 1.1 below 1 MiB, 0.88 at 4 to 16, 0.63, 0.46
/// and 0.30.
constexpr ErrorBySize kModelErrorNear{0.6, 4 * kMiB, 0.15, 256 * kMiB},
    kModelErrorFar{1.4, 16 * kMiB, 0.35, 256 * kMiB};
/// The same of the ratio of two sizes: |ln| 0.34 at 1 to 4 MiB, 0.21, 0.14, 0.10 and 0.07; over nodes up to 0.85 below
/// 1 MiB, 0.67 at 4 to 16, 0.34, 0.37 and 0.10.
constexpr ErrorBySize kSizeErrorNear{0.4, 4 * kMiB, 0.1, 256 * kMiB}, kSizeErrorFar{0.95, 16 * kMiB, 0.45, 32 * kMiB};

/// Of these tables no size of one node that bytes decide takes more than 1.14 times as long as by the formulas' longest
/// time at the least share of healthy links, of several nodes 1.9 up to 16 MiB, in one table, 1.5 at 32 MiB, 1.3 at 64
/// MiB, and 1.24 of more; but for a kink of each.
constexpr ErrorBySize kLateNear{0.15, kMiB, 0.15, 2 * kMiB}, kLateFar{0.6, 16 * kMiB, 0.25, 256 * kMiB};

size_t row(Protocol protocol) {
    return protocol == Protocol::ll ? 0 : protocol == Protocol::ll128 ? 1 : 2;
}

double nearRate(const LinkModel& link) {
    return link.nearBytesPerNs > 0 ? link.nearBytesPerNs : link.nodes <= 1 ? link.bytesPerNs : 0;
}

bool overPcie(const LinkModel& link) {
    if (link.nearMedium != LinkMedium::unknown) return isPcie(link.nearMedium);
    return nearRate(link) > 0 && isPcie(mediumOf({.bytesPerNs = nearRate(link)}, false));
}

/// Returns times of NCCL's table in hops of alphaNs: of a node's own hardware, and of the network.
class InHops {
  public:
    explicit InHops(const LinkModel& link)
        : m_pcie(overPcie(link)), m_near(link.nearAlphaShare / (m_pcie ? kRing.pcie[2] : kRing.nvlink[2])) {}

    double device(double us) const { return us * m_near; }
    double network(double us) const { return us / kRing.network[2]; }
    double nearHop(const Latencies& of, Protocol protocol) const {
        return device(m_pcie ? of.pcie[row(protocol)] : of.nvlink[row(protocol)]);
    }
    double networkHop(const Latencies& of, Protocol protocol) const { return network(of.network[row(protocol)]); }

  private:
    bool m_pcie;
    double m_near;  // hops per us
};

Range known(double value) {
    return {value * (1 - kOtherMachine), value * (1 + kOtherMachine)};
}

Range times(const Range& a, const Range& b) {
    return {a.low * b.low, a.high * b.high};
}

double levelsOf(int count) {
    return std::ceil(std::log2(std::max(count, 1)));
}

/// Returns the hops of a ring. Those of Simple are what alphaNs means; what other protocols' take is NCCL's to say.
Range ringHops(const LinkModel& link, Op op, int ranks, Protocol protocol) {
    const InHops hops(link);
    const double steps = std::max(facts::ringRounds(op), 1.0);
    const double all = steps * (std::max(ranks, 2) - 1), far = link.nodes > 1 ? steps * (link.nodes - 1) : 0;
    // With one rank per node nothing hides a hop's latency: it is a tree's.
    const Latencies& network = link.nodes > 1 && link.nodes >= ranks ? kTree : kRing;
    double most = (all - far) * hops.nearHop(kRing, protocol) + far * hops.networkHop(network, protocol);
    const double base = hops.device(kRing.base[row(protocol)]);
    if (row(protocol) != row(Protocol::simple)) return known(base + most);
    const Range whole{base * (1 - kOtherMachine) + most, base * (1 + kOtherMachine) + most};
    const bool plateau = link.nodes > 1 && op == Op::allReduce;
    return plateau ? Range{whole.low, whole.high * kPlateau} : whole;
}

/// Returns the hops of grouped messages, or of one.
Range messageHops(const LinkModel& link, Op op, int ranks) {
    const double base = store::isP2p(op) ? 0 : InHops(link).device(kRing.base[row(Protocol::simple)]);
    const double peers = store::isP2p(op) ? 1 : std::max(ranks, 2) - 1;
    return {base * (1 - kOtherMachine) + 1, base * (1 + kOtherMachine) + 1 + kPerMessage * (peers - 1)};
}

bool isMessages(Op op) {
    return store::isP2p(op) || op == Op::allToAll;
}

/// Returns how many times a ring's bus bandwidth trees between two nodes can have, which cross the network half as
/// often: what the ports bear, which carry all of it.
Range twoNodes(const LinkModel& link, double ofPort) {
    if (link.nearBytesPerNs <= 0) return {kTwoNodes.low, 2};  // at most, and a ring's at worst
    const double most = std::min(ofPort * link.nearBytesPerNs / link.bytesPerNs, 2.0);
    return {kTwoNodes.low * most, kTwoNodes.high * most};
}

/// Returns the share that an algorithm reaches by Simple of the largest messages.
Range algorithmShare(const LinkModel& link, Op op, Algorithm algorithm) {
    switch (algorithm) {
        case Algorithm::tree:
            return link.nodes == 2 ? twoNodes(link, kTreeMost) : kTreeShare;
        case Algorithm::nvls:
            return op == Op::allReduce ? kInSwitch : Range{1, 1};
        case Algorithm::nvlsTree:
            return link.nodes == 2 ? twoNodes(link, kInSwitch.high) : Range{kTwoNodes.low, 1};
        case Algorithm::pat:
            return kPatShare;
        default:
            return {1, 1};
    }
}

/// Returns the share that LL's format leaves of what its algorithm reaches.
Range llFormat(Algorithm algorithm) {
    return algorithm == Algorithm::tree ? kTreeLl : kLlOfSlowLink;
}

Range llShare(const LinkModel& link, Op op, Algorithm algorithm) {
    const Range format = llFormat(algorithm);
    if (link.nodes > 1) {
        const Range& most = link.nodes == 2 ? kLlTwoNodes : kLlNodes;
        const double rate = link.bytesPerNs * algorithmShare(link, op, algorithm).high;
        return {std::min(format.low, most.low / rate), std::min(format.high, most.high / rate)};
    }
    return algorithm == Algorithm::tree || overPcie(link) ? format : kLlOfNvlink;
}

/// Returns the share that a protocol's format, or the device, leaves of what its algorithm reaches.
Range protocolShare(const LinkModel& link, Op op, AlgorithmChoice choice) {
    if (choice.protocol == Protocol::ll) return llShare(link, op, choice.algorithm);
    if (choice.protocol != Protocol::ll128) return {1, 1};
    return choice.algorithm == Algorithm::tree && link.nodes <= 1 ? kTreeLl128OneNode : kLl128;
}

Range treeCorrection(Protocol protocol, double bytes) {
    const auto& row = kTreeCorrection[costs::row(protocol)];
    const int step = std::bit_width(static_cast<uint64_t>(bytes) >> 6) - 1;
    if (step < 0 || step >= static_cast<int>(row.size())) return {1, 1};
    const double factor = row[static_cast<size_t>(step)];
    return {factor * (1 - kCorrectionKnown), std::min(1.0, factor * (1 + kCorrectionKnown))};
}

/// Returns what `share` becomes of so few bytes: the hops' time at the place that `doubt` has of it.
double ramped(const LinkModel& link, AlgorithmChoice choice, double share, double bytes, double doubt) {
    const InHops in(link);
    double hops = link.nodes > 1 ? kRampHopsNetwork * in.networkHop(kRing, choice.protocol)
                                 : kRampHopsNear * in.nearHop(kRing, choice.protocol);
    if (choice.algorithm == Algorithm::pat) hops *= kPatHop;
    const double bytesNs = bytes / (link.bytesPerNs * share);
    return share / (1 + std::pow(doubt * hops * link.alphaNs / bytesNs, kRampPower));
}

/// Returns the bandwidth's share without what the device may take of it.
double linkShare(const LinkModel& link, Op op, AlgorithmChoice choice, double bytes) {
    const double ofFormat =
        choice.protocol == Protocol::ll ? llFormat(choice.algorithm).high : protocolShare(link, op, choice).high;
    double share = ofFormat * algorithmShare(link, op, choice.algorithm).low;
    if (bytes <= 0) return share;
    if (choice.algorithm == Algorithm::tree) share *= treeCorrection(choice.protocol, bytes).low;
    return store::isP2p(op) ? share : ramped(link, choice, share, bytes, kRampKnown.high);
}

}  // namespace

Range latencyHops(const LinkModel& link, Op op, int ranks, AlgorithmChoice choice) {
    if (isMessages(op)) return messageHops(link, op, ranks);
    const InHops hops(link);
    const double levels = levelsOf(link.nodes);
    const double perNode = static_cast<double>(std::max(ranks, 2)) / std::max(link.nodes, 1);
    switch (choice.algorithm) {
        case Algorithm::tree:
            return known(hops.device(kTree.base[row(choice.protocol)]) +
                         2 * ((perNode - 1) * hops.nearHop(kTree, choice.protocol) +
                              levels * hops.networkHop(kTree, choice.protocol)));
        case Algorithm::nvls:
            return known(hops.device(kNvlsUs));
        case Algorithm::nvlsTree:
            return known(hops.device(kNvlsUs) + 2 * levels * hops.network(kNvlsTreeNetworkUs));
        case Algorithm::pat:
            return known(hops.device(kPatBase) + levels * kPatHop * hops.networkHop(kTree, Protocol::simple) +
                         hops.network(kPatPerRank) * ranks);
        default:
            return ringHops(link, op, ranks, choice.protocol);
    }
}

Range bandwidthShare(const LinkModel& link, Op op, AlgorithmChoice choice, double bytes) {
    Range share = times(protocolShare(link, op, choice), algorithmShare(link, op, choice.algorithm));
    if (bytes <= kAnySize || store::isP2p(op)) return share;
    // Messages to several peers at once hide each other's start: their ramp is a collective's at most.
    if (isMessages(op)) return {ramped(link, choice, share.low, bytes, kRampKnown.high), share.high};
    if (choice.algorithm == Algorithm::tree) share = times(share, treeCorrection(choice.protocol, bytes));
    return {ramped(link, choice, share.low, bytes, kRampKnown.high),
            ramped(link, choice, share.high, bytes, kRampKnown.low)};
}

double modelError(const LinkModel& link, double bytes) {
    return (link.nodes > 1 ? kModelErrorFar : kModelErrorNear).at(bytes);
}

double sizeError(const LinkModel& link, double bytes) {
    return (link.nodes > 1 ? kSizeErrorFar : kSizeErrorNear).at(bytes);
}

double healthyLateness(const LinkModel& link, double bytes) {
    return 1 + (link.nodes > 1 ? kLateFar : kLateNear).at(bytes);
}

LinkModel linkOfRate(const facts::Communicator& communicator, double bytesPerNs, double alphaNs) {
    LinkModel link{alphaNs, bytesPerNs, std::max(1, communicator.nodes)};
    if (link.nodes > 1) link.nearAlphaShare = unknownAlphaNs(false) / unknownAlphaNs(true);
    return link;
}

std::optional<LinkModel> linkModel(const LinkPeaks& peaks, const facts::Communicator& communicator, Op op) {
    const std::optional<double> ceiling = peaks.busCeiling(communicator, op);
    if (!ceiling) return std::nullopt;
    LinkModel link = linkOfRate(communicator, *ceiling, peaks.alphaPerHop(communicator));
    if (peaks.intra) link.nearMedium = peaks.intra->medium;
    if (communicator.nodes <= 1) return link;
    const double near = peaks.intra && peaks.intra->alphaNs > 0 ? peaks.intra->alphaNs : unknownAlphaNs(false);
    const double far = link.alphaNs > 0 ? link.alphaNs : unknownAlphaNs(true);
    link.nearAlphaShare = std::min(1.0, near / far);
    if (peaks.intra && peaks.intra->kind != PeakKind::atLeast) link.nearBytesPerNs = peaks.intra->bytesPerNs;
    return link;
}

bool isModelled(Op op, AlgorithmChoice choice) {
    if (choice.protocol == Protocol::unknown) return false;
    if (choice.algorithm == Algorithm::ring)
        return op == Op::allReduce || op == Op::allGather || op == Op::reduceScatter;
    if (choice.algorithm == Algorithm::pat)
        return choice.protocol == Protocol::simple && (op == Op::allGather || op == Op::reduceScatter);
    return choice.algorithm == Algorithm::tree && op == Op::allReduce;
}

Range collectiveNs(const LinkModel& link, Op op, int ranks, double bytes, AlgorithmChoice choice) {
    const Range bandwidth = bandwidthShare(link, op, choice, bytes), hops = latencyHops(link, op, ranks, choice);
    const double busNs = bytes * facts::busFactor(op, ranks) / link.bytesPerNs;
    return {hops.low * link.alphaNs + busNs / bandwidth.high, hops.high * link.alphaNs + busNs / bandwidth.low};
}

std::vector<AlgorithmChoice> algorithmChoices(Op op) {
    std::vector<AlgorithmChoice> choices;
    for (Algorithm algorithm : {Algorithm::ring, Algorithm::tree})
        for (Protocol protocol : {Protocol::simple, Protocol::ll128, Protocol::ll})
            if (isModelled(op, {algorithm, protocol})) choices.push_back({algorithm, protocol});
    return choices;
}

double cheapestNs(const LinkModel& link, Op op, int ranks, double bytes) {
    double best = 0;
    for (AlgorithmChoice choice : algorithmChoices(op)) {
        const double middle = collectiveNs(link, op, ranks, bytes, choice).middle();
        if (best == 0 || middle < best) best = middle;
    }
    return best > 0 ? best : collectiveNs(link, op, ranks, bytes, {}).middle();
}

Range bestShare(const LinkModel& link, Op op, double bytes) {
    std::vector<AlgorithmChoice> choices = algorithmChoices(op);
    if (choices.empty()) choices = {{}};
    Range best;
    for (AlgorithmChoice choice : choices) {
        const Range share = bandwidthShare(link, op, choice, bytes);
        best = {std::max(best.low, share.low), std::max(best.high, share.high)};
    }
    return best;
}

std::optional<double> bestCeiling(const LinkPeaks& peaks, const facts::Communicator& communicator, Op op) {
    const std::optional<LinkModel> link = linkModel(peaks, communicator, op);
    if (!link) return std::nullopt;
    if (peaks.atLeast(communicator, op)) return link->bytesPerNs;
    return link->bytesPerNs * bestShare(*link, op, kAnySize).high * ceilingShare(peaks, communicator, op).share.high;
}

std::string toSetting(Algorithm algorithm) {
    return algorithm == Algorithm::tree ? "tree" : "ring";
}

std::string toSetting(Protocol protocol) {
    return protocol == Protocol::ll ? "LL" : protocol == Protocol::ll128 ? "LL128" : "Simple";
}

double unknownAlphaNs(bool betweenNodes) {
    // With these the smallest messages of published nccl-tests tables start as they do, in the median: 40 of one node
    // (quartiles 6.8 and 10.6 us), 44 of several (13.6 and 52 us).
    return betweenNodes ? 20'000 : 8'000;
}

std::optional<LinkModel> linkWithLatency(const LinkPeaks& peaks, const facts::Communicator& communicator,
                                         store::Op op) {
    std::optional<LinkModel> link = linkModel(peaks, communicator, op);
    if (link && link->alphaNs <= 0) link->alphaNs = unknownAlphaNs(communicator.nodes > 1);
    return link;
}

std::optional<LinkModel> linkToCompare(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op) {
    return peaks.atLeast(communicator, op) ? linkWithLatency(peaks, communicator, op)
                                           : linkModel(peaks, communicator, op);
}

double linkBoundNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice) {
    const double startNs = latencyHops(link, op, ranks, choice).high * link.alphaNs;
    return startNs + bytes * facts::busFactor(op, ranks) / link.bytesPerNs / linkShare(link, op, choice, bytes);
}

LinkModel seenLink(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs) {
    const double startNs = linkBoundNs(link, op, ranks, 0, choice),
                 boundNs = linkBoundNs(link, op, ranks, bytes, choice);
    const bool mostlyBytes = boundNs >= 2 * startNs;  // above n*: less says more about latency than about the link
    if (!mostlyBytes || measuredNs < kSlowLink * collectiveNs(link, op, ranks, bytes, choice).high) return link;
    LinkModel seen = link;
    seen.bytesPerNs *= (boundNs - startNs) / (measuredNs - startNs);
    return seen;
}

double explainedNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs) {
    const Range allowed = collectiveNs(link, op, ranks, bytes, choice);
    if (measuredNs >= kSlowLink * allowed.high) return linkBoundNs(link, op, ranks, bytes, choice);
    return std::clamp(measuredNs, allowed.low, allowed.high);
}

}  // namespace rankscope::costs

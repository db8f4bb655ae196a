// SPDX-License-Identifier: Apache-2.0
// Time of a collective by algorithm and protocol: hops x alpha + bus bytes over the share of the link that the protocol
// reaches. Hops: ring all-reduce 2(P-1), ring all-gather and reduce-scatter P-1, tree 2 ceil(log2 P), PAT ceil(log2 P)
// (NCCL src/graph/tuning.cc; Hockney's alpha-beta model). Shares: an LL line is half flags, an LL128 line 8 of 128
// bytes; a tree's inner ranks send twice. NCCL's own table (tuning.cc, 2.28) varies with the hardware around these, so
// that each value is a range: what is claimed must hold at its unfavourable end.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/costs/link_peaks.h"

namespace rankscope::costs {

struct AlgorithmChoice {
    store::Algorithm algorithm = store::Algorithm::ring;
    store::Protocol protocol = store::Protocol::simple;
    auto operator<=>(const AlgorithmChoice&) const = default;
};

struct Range {
    double low = 0;
    double high = 0;
    /// The value at a place: 0 at the low end, 1 at the high end.
    double at(double place) const { return low + place * (high - low); }
    double middle() const { return (low + high) / 2; }
};

/// A communicator's link as the formulas need it.
struct LinkModel {
    double alphaNs = 0;     // per hop, of Simple
    double bytesPerNs = 0;  // highest bus bandwidth
};

/// From link peaks; nothing without a bandwidth.
std::optional<LinkModel> linkModel(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op);

/// True for the combinations these formulas know: ring and tree (all-reduce only) with LL, LL128 and Simple, PAT
/// (all-gather and reduce-scatter only).
bool isModelled(store::Op op, AlgorithmChoice choice);

/// Share of the link's bandwidth that a choice reaches, start-up per hop against that of Simple, hops of the start-up:
/// what the formulas are made of.
Range bandwidthShare(AlgorithmChoice choice);
Range startupShare(store::Protocol protocol);
Range hopsOf(store::Op op, int ranks, store::Algorithm algorithm);

/// How far the place of a protocol in its range of bandwidths is known from the same protocol with another algorithm: a
/// tree's 0.8 to 0.92 of a ring's rate moves LL's by 0.23 at most. Start-ups differ by twice as much of theirs in
/// NCCL's table (tuning.cc).
inline constexpr double kSameProtocol = 0.25;

/// Shortest and longest time the formulas allow. An unknown algorithm or protocol counts as ring or Simple.
Range collectiveNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice);

/// Cheapest of NCCL's rings and trees, the middle of what the formulas allow, ns.
double cheapestNs(const LinkModel& link, store::Op op, int ranks, double bytes);

/// All modelled choices for an operation on whatever group: PAT needs one GPU per node.
std::vector<AlgorithmChoice> algorithmChoices(store::Op op);

/// As NCCL_ALGO and NCCL_PROTO spell them.
std::string toSetting(store::Algorithm algorithm);
std::string toSetting(store::Protocol protocol);

/// The start-up per hop of a link that tells none.
double unknownAlphaNs(bool betweenNodes);

/// linkModel() with a start-up in any case.
std::optional<LinkModel> linkWithStartup(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op);

/// What measured times are held against: what the job reached holds for other sizes with the start-up that they are
/// known to have, since none would make small messages look slow. What a user left out stays open.
std::optional<LinkModel> linkToCompare(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op);

/// Times the longest time the formulas allow. Healthy links reach 80 to 95 % of their peak, unseen sharing may take a
/// tenth: under two thirds the link is slow.
constexpr double kSlowLink = 1.5;

/// Longest time (ns) on `link` where nothing but the link holds the protocol. NCCL prices the bandwidth of LL as
/// min(half of the link's, what the SMs' polling reaches), that of LL128 alike (src/graph/tuning.cc: llMaxBw,
/// perChMaxRingLL128Bw). The second is of the device: a link so slow that even the lowest such share of what was stated
/// does not explain the time lies below it, so that the protocol reaches what its line format leaves of the link. No
/// longer than collectiveNs().high, and the same for Simple.
double linkBoundNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice);

/// `link` as the measured time shows it: of less bandwidth where it is slow and bytes take most of the time. The
/// start-up is then as stated.
LinkModel seenLink(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs);

/// The part of `measuredNs` that the formulas explain on `link`, ns; the rest is of the link's own state and stays with
/// whatever choice.
double explainedNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs);

}  // namespace rankscope::costs

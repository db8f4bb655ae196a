// SPDX-License-Identifier: Apache-2.0
// Prices a collective as NCCL's public tuning model does (2.28, src/graph/tuning.cc): a base latency per algorithm and
// protocol and a latency per hop by link class, so that a ring pays the network only between nodes; and bus bytes over
// the share of the link that the protocol reaches, which grows with the message. NCCL's figures are of NVIDIA's own
// machines: they give the proportions, the link says what a hop takes, and each value is a range: what is claimed must
// hold at its pessimistic end.
#pragma once

#include <optional>
#include <vector>

#include "analyzer/costs/link_peaks.h"

namespace rankscope::costs {

struct AlgorithmChoice {
    store::Algorithm algorithm = store::Algorithm::ring;
    store::Protocol protocol = store::Protocol::simple;
    bool known() const { return algorithm != store::Algorithm::unknown && protocol != store::Protocol::unknown; }
    auto operator<=>(const AlgorithmChoice&) const = default;
};

/// Holds a communicator's link as the formulas need it.
struct LinkModel {
    double alphaNs = 0;     // a ring's hop by Simple, on the slowest links that there are
    double bytesPerNs = 0;  // highest bus bandwidth of a ring
    int nodes = 1;
    double nearAlphaShare = 1;                    // what a hop inside a node takes of alphaNs
    double nearBytesPerNs = 0;                    // of a rank's port where there are several nodes; 0: not known
    LinkMedium nearMedium = LinkMedium::unknown;  // of that port, or of a node's links; unknown: by the rate (mediumOf)
};

/// Returns the formulas' error: of nine in ten times of a size that published tables hold they are off by this factor
/// less 1 at most, told the makers' rates and a latency (reference/README.md, `world.formulas`). A ratio of two choices
/// is taken to be as far off, since machines differ in what they make of each: trees of 5 nodes of H100 and of 3 of
/// GB200 are 0.8 and 1.3 times as fast beside rings as NCCL has them (NVIDIA/nccl 1368, 1801).
double modelError(const LinkModel& link, double bytes);

/// Returns the same of the ratio of two times by one choice, of these bytes and of SizeCurve::kSmallestRange times as
/// many: what a machine makes of the one size it mostly makes of the other.
double sizeError(const LinkModel& link, double bytes);

/// Returns how many times as long messages take on healthy machines at most as the formulas' longest time at the least
/// share of the rate that healthy links reach (reached_share.h).
double healthyLateness(const LinkModel& link, double bytes);

/// Makes one of a rate and a ring's latency per hop, 0 where it is not known; hops inside a node take the usual part of
/// it. `nearBytesPerNs` stays unknown.
LinkModel linkOfRate(const facts::Communicator& communicator, double bytesPerNs, double alphaNs);

/// Makes one from link peaks; nothing without a bandwidth.
std::optional<LinkModel> linkModel(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op);

/// True for the combinations these formulas know: ring and tree (all-reduce only) with LL, LL128 and Simple, PAT
/// (all-gather and reduce-scatter only).
bool isModelled(store::Op op, AlgorithmChoice choice);

/// Returns the latency in hops of alphaNs, NCCL's base latency among them.
Range latencyHops(const LinkModel& link, store::Op op, int ranks, AlgorithmChoice choice);

/// Returns the share of the link's bytesPerNs that a message reaches with a choice: over 1 where trees between two
/// nodes send each sum once, or the NVSwitch adds up. kAnySize stands for the largest messages.
inline constexpr double kAnySize = 0;
Range bandwidthShare(const LinkModel& link, store::Op op, AlgorithmChoice choice, double bytes);

/// The place of a protocol in its range of bandwidths is known this far from the same protocol with another algorithm:
/// of a tree's 0.8 to 0.92 of a ring's rate LL keeps a place within 0.23. Latencies differ by twice as much of theirs
/// in NCCL's table (tuning.cc).
inline constexpr double kSameProtocol = 0.25;

/// Returns how many times a ring's rate the best of NCCL's rings and trees has of a message of this size: over 1 where
/// trees between two nodes cross the network half as often.
Range bestShare(const LinkModel& link, store::Op op, double bytes);

/// Returns the highest bus bandwidth of the largest messages that NCCL reaches with the best of its rings and trees,
/// the ceiling that findings and the window speak of; nothing without a peak. Of a peak that is only what the job
/// reached it is that.
std::optional<double> bestCeiling(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op);

/// Returns the shortest and the longest time the formulas allow. An unknown algorithm or protocol counts as ring or
/// Simple.
Range collectiveNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice);

/// Returns the time of the fastest of NCCL's rings and trees, the middle of what the formulas allow, ns.
double cheapestNs(const LinkModel& link, store::Op op, int ranks, double bytes);

/// Returns all modelled choices for an operation on whatever group: PAT needs one GPU per node.
std::vector<AlgorithmChoice> algorithmChoices(store::Op op);

/// Write them as NCCL_ALGO and NCCL_PROTO spell them.
std::string toSetting(store::Algorithm algorithm);
std::string toSetting(store::Protocol protocol);

/// Returns the latency per hop of a link for which none is known.
double unknownAlphaNs(bool betweenNodes);

/// Returns linkModel() with a latency in any case.
std::optional<LinkModel> linkWithLatency(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op);

/// Returns the link that measured times are held against: what the job reached holds for other sizes with the latency
/// that they are known to have, since none would make small messages look slow. What a user left out stays open.
std::optional<LinkModel> linkToCompare(const LinkPeaks& peaks, const facts::Communicator& communicator, store::Op op);

/// A link is slow that takes this many times the longest time that the formulas allow: sharing that went unseen may
/// take a tenth, and a job's step a fifth of what nccl-tests reach (eight A100: 186 of 235 GB/s). Verdicts count from
/// the share of the rate that healthy links reach (reached_share.h); prices from the rate itself, so that what a link
/// does not reach is laid to it (seenLink).
constexpr double kSlowLink = 1.5;

/// Returns the longest time (ns) on `link` where nothing but the link holds the protocol. NCCL prices the bandwidth of
/// LL as min(half of the link's, what the SMs' polling reaches), that of LL128 alike (src/graph/tuning.cc: llMaxBw,
/// perChMaxRingLL128Bw). The second is of the device: a link so slow that even the lowest such share of what was stated
/// does not explain the time lies below it, so that the protocol reaches what its line format leaves of the link. It is
/// no longer than collectiveNs().high, and the same for Simple.
double linkBoundNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice);

/// Returns `link` as the measured time shows it: of less bandwidth where it is slow and bytes take most of the time.
/// The latency is then as stated.
LinkModel seenLink(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs);

/// Returns the part of `measuredNs` that the formulas explain on `link`, ns; the rest is of the link's own state and
/// stays with whatever choice.
double explainedNs(const LinkModel& link, store::Op op, int ranks, double bytes, AlgorithmChoice choice,
                   double measuredNs);

}  // namespace rankscope::costs

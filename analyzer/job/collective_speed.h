// SPDX-License-Identifier: Apache-2.0
// How fast collectives ran against what their link, algorithm and protocol allow, and which messages had their links
// for themselves.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <vector>

#include "analyzer/job/analysis.h"

namespace rankscope::job {

/// Communication of a rank beside which it carries other communication for more than a tenth of its transfer.
std::set<const facts::CommTask*> disturbedTasks(const facts::RankSummary& rank);

/// Collectives of which a member is disturbed: Analysis::sharedCollectives.
std::set<int64_t> sharedCollectives(std::span<const facts::RankSummary> ranks);

/// Longest time that the link's peak, algorithm and protocol explain of a collective that took `measuredNs`, ns; where
/// that is slow by LinkProbe's measure of links without siblings, linkBoundNs(). Nothing without a peak, and where
/// start-up, not bytes, takes the time.
std::optional<double> expectedOfLargeNs(const costs::LinkPeaks& peaks, const facts::Communicator& communicator,
                                        store::Op op, double bytes, costs::AlgorithmChoice choice, double measuredNs);

struct LargeCollective {
    const store::Collective* collective = nullptr;
    double transferNs = 0;
    double expectedNs = 0;  // expectedOfLargeNs(), with what compute beside it may take of PCIe
    double slowness() const { return transferNs / expectedNs; }
};

/// Undisturbed collectives of the communicator in which bytes, not start-up, take the time. Needs a known peak and
/// known sizes; else empty.
std::vector<LargeCollective> largeCollectives(const Analysis& analysis, const facts::Communicator& communicator);

/// Whether compute slows the communicator's transfers: they go between PCIe cards of one node.
bool slowedByCompute(const Analysis& analysis, const facts::Communicator& communicator);

/// Median rate that they reached on the bus.
double busBytesPerNs(const std::vector<LargeCollective>& collectives, int ranks);

/// Median slowness; nothing without enough of them.
std::optional<double> slownessOf(const std::vector<LargeCollective>& collectives);

struct CollectiveSpeedThresholds {
    static constexpr double kStartupShare =
        0.5;  // of the expected time: above it the message is under n* and says more about latency than about the link
    static constexpr double kSharedShare =
        0.1;  // of a transfer beside another one: a tenth more time stays within what peaks are known to
    static constexpr size_t kFewest = 3;  // one slow message is an accident
    // Times as long as alone copies between PCIe cards take while these compute: 1.5 to 1.8 were measured.
    static constexpr double kPcieBesideCompute = 1.8, kLeastPcieBesideCompute = 1.5;
};

/// A message of known size that had its links for itself, and what it took from the later arrival of its two ranks, ns.
struct UndisturbedMessage {
    const store::P2p* row = nullptr;
    double ns = 0;
};

/// Messages whose kernels on both ranks run beside no other one of the rank, and carry nothing else, or a group in
/// which no other message takes the same way out of its sender or into its receiver (inside the node, or to other
/// nodes). Of a group those only whose end a kernel shows (message_times.h).
std::vector<UndisturbedMessage> undisturbedMessages(const Analysis& analysis);

}  // namespace rankscope::job

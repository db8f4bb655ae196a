// SPDX-License-Identifier: Apache-2.0
// How fast collectives ran against what their link, algorithm and protocol allow.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "analyzer/costs/nccl_formulas.h"
#include "analyzer/job/analysis.h"

namespace rankscope::job {

/// Collectives of the analysed steps that share their link with another transfer: a member carries other communication
/// for a tenth of their transfer or more. Their time tells nothing about the link.
std::set<int64_t> sharedCollectives(const Analysis& analysis);

struct LargeCollective {
    const store::Collective* collective = nullptr;
    double transferNs = 0;
    double expectedNs =
        0;  // longest time that the link's peak, algorithm and protocol explain; where the link is slow, linkBoundNs()
    double slowness() const { return transferNs / expectedNs; }
};

/// Undisturbed collectives of the communicator in which bytes, not start-up, take the time. Needs a known peak and
/// known sizes; else empty.
std::vector<LargeCollective> largeCollectives(const Analysis& analysis, const facts::Communicator& communicator,
                                              const std::set<int64_t>& shared);

/// Median slowness; nothing without enough of them.
std::optional<double> slownessOf(const std::vector<LargeCollective>& collectives);

struct CollectiveSpeedThresholds {
    static constexpr double kStartupShare =
        0.5;  // of the expected time: above it the message is under n* and says more about latency than about the link
    static constexpr double kSharedShare =
        0.1;  // of a transfer beside another one: a tenth more time stays within what peaks are known to
    static constexpr size_t kFewest = 3;  // one slow message is an accident
};

}  // namespace rankscope::job

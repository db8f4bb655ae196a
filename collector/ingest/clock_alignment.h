// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/ingest/instance_groups.h"

namespace rankscope::collector {

/// What one host's clock shows when the reference host's shows something else, at an instant both took part in.
struct ClockSample {
    int64_t hostNs = 0;
    int64_t referenceNs = 0;
};

/// reference time = host time + offsetNs + driftPpb * (host time - anchorNs) / 1e9
struct ClockFit {
    int64_t anchorNs = 0;
    int64_t offsetNs = 0;
    int64_t driftPpb = 0;
    int64_t boundNs = 0;
    int64_t samples = 0;

    int64_t apply(int64_t hostNs) const noexcept;
};

/// Robust line through the samples: median of pairwise slopes, median offset. The slope is used only when it explains
/// more than the scatter. The bound is the 95th percentile of what the line leaves unexplained.
ClockFit fitClock(std::vector<ClockSample> samples);

/// Clocks of all hosts, fitted to that of host 0 (the host of the lowest rank).
struct HostClocks {
    struct Host {
        std::string name;
        std::string bootId;
        ClockFit fit;
        std::string method;  ///< reference | collectives | none
    };
    std::vector<Host> hosts;  ///< by lowest rank
    std::vector<int32_t> hostOfSummary;
    int64_t originNs = 0;  ///< reference time of the first event: 0 of the job clock

    /// A time of this rank on the job clock.
    int64_t jobNs(size_t summary, int64_t hostNs) const noexcept {
        return hosts[static_cast<size_t>(hostOfSummary[summary])].fit.apply(hostNs) - originNs;
    }
};

/// Ranks of one host (name and boot id) share a clock. A host is tied to the reference by the ends of all-reduce,
/// all-gather, reduce-scatter and all-to-all instances that both took part in: nobody leaves those before the last has
/// arrived, and all leave them together up to the skew of the transfer. Hosts that share no instance with the reference
/// are tied through a third, or by the ends of sends and receives (message_ends.h).
HostClocks alignClocks(const std::vector<RankSummary>& summaries, const InstanceGroups& collectives,
                       const std::vector<MessagePair>& messages);

}  // namespace rankscope::collector

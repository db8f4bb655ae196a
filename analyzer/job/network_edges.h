// SPDX-License-Identifier: Apache-2.0
// Which way between nodes holds a collective up. In a ring or tree all members are slowed alike, and the clocks of
// hosts are aligned by the collectives' own ends; but the sender of the slow edge has its buffers on the network nearly
// all the time, while the others wait for their GPU. NCCL's proxy thread times that on one host's clock.
#pragma once

#include <vector>

#include "analyzer/job/link_suspects.h"

namespace rankscope::job {

struct NetworkEdgeThresholds {
    // Start-up (10 to 20 us between nodes) times a link's rate: under a megabyte the time on the network tells more
    // about latency than about the link.
    static constexpr int64_t kFewestBytes = 1 << 20;
    // The siblings that set the measure are the fastest quarter: of three nodes one slow NIC slows two thirds of the
    // edges.
    static constexpr double kFastShare = 0.25;
    // The place must explain at least this much of what the collective is too slow by; else all edges are slow, and
    // this one a little more.
    static constexpr double kExplained = 0.5;
};

/// One probe per sender and receiver on different nodes, measured against its siblings: the edges that carried messages
/// of the same size (within a factor of two). slowness: time on the network over that of the siblings. Empty without
/// proxy events.
std::vector<LinkProbe> networkEdges(const Analysis& analysis);

/// The ranks, pairs and nodes whose edges are slower than their siblings and that explain slow collectives, `open`.
/// With two nodes the two ends of a rail have the same traffic, so the pair is named.
std::vector<LinkSuspect> slowNetworkEdges(const Analysis& analysis, const std::vector<LinkProbe>& edges,
                                          const std::vector<const LinkProbe*>& open);

}  // namespace rankscope::job

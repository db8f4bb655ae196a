// SPDX-License-Identifier: Apache-2.0
// Who is behind slow probes. A suspect is consistent when every probe that needs its link is slow; the one that
// explains most slow probes is taken, until none is left unexplained.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/facts/trace_facts.h"
#include "analyzer/job/link_probes.h"

namespace rankscope::job {

struct LinkSuspect {
    std::vector<int> ranks;  // one rank, a pair, or all ranks of a node
    bool node = false;
    bool pair = false;               // messages from ranks[0] to ranks[1]
    bool bothWays = false;           // and back
    bool betweenNodes = false;       // only its links to other nodes are slow
    std::string leaving;             // who leaves last, when that is what tells
    std::string network;             // what is slow, when the proxies' times tell (slowNetworkEdges)
    std::vector<std::string> facts;  // and by how much
    std::vector<EvidenceRow> rows;
    std::vector<const LinkProbe*> explains;
    std::vector<const LinkProbe*> exonerates;  // probes as fast as they should be that tell it from the others
};

struct LinkSuspects {
    std::vector<LinkSuspect> found;             // told apart from everybody else
    std::vector<const LinkProbe*> unexplained;  // slow, with several suspects left or the whole class of links
    std::vector<int> candidates;                // who may be behind those
};

LinkSuspects findSuspects(const Analysis& analysis, const std::vector<LinkProbe>& probes);

// Who leaves a slow communicator's collectives last. In a ring the slowest edge is busy to the end: its sender and its
// receiver leave last, and each member behind leaves one chunk earlier. Of a slow rank both edges are slow, so it
// leaves last between its two neighbours.

struct LeavingThresholds {
    static constexpr double kVisibleNs =
        5'000;  // device clocks of one host agree to about a microsecond, kernels' ends are recorded to that
    static constexpr double kClockBounds = 2;  // between hosts either clock may be off by the bound
    static constexpr double kPersistent =
        0.75;  // of the large collectives that agree on who is last: a disturbed one in four is let pass
};

/// The rank, pair or node that the slow probe's last members single out; nothing when all end together, the clock hides
/// it, or it changes.
std::optional<LinkSuspect> lastToLeave(const Analysis& analysis, const LinkProbe& probe);

/// How many times slower than the others, at least, the edge is that the communicator's ring waits for; nothing where
/// lastToLeave() names nobody. An edge slower by d of its time lets the members behind it leave d of a chunk's time
/// earlier. A chunk is a member's part of the message, in each channel at most half of NCCL's buffer; where the
/// channels are not known it is taken as the whole part, which errs to the low side. `most`: d is believed up to this.
std::optional<double> slowestEdge(const Analysis& analysis, const facts::Communicator& communicator, double most);

// Which way between nodes holds a collective up. In a ring or tree all members are slowed alike, and the clocks of
// hosts are aligned by the collectives' own ends; but the sender of the slow edge has its buffers on the network nearly
// all the time, while the others wait for their GPU. NCCL's proxy thread times that on one host's clock.

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

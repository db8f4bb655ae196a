// SPDX-License-Identifier: Apache-2.0
// Who is behind slow probes. A suspect is consistent when every probe that needs its link is slow; the one that
// explains most slow probes is taken, until none is left unexplained.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/job/link_probes.h"

namespace rankscope::job {

struct LinkSuspect {
    std::vector<int> ranks;  // one rank, a pair, or all ranks of a node
    bool node = false;
    bool pair = false;               // messages from ranks[0] to ranks[1]
    bool bothWays = false;           // and back
    bool betweenNodes = false;       // only its links to other nodes are slow
    std::string leaving;             // who leaves last, when that is what tells
    std::string network;             // what is slow, when the proxies' times tell (network_edges.h)
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

}  // namespace rankscope::job

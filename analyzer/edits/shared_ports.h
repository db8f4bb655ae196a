// SPDX-License-Identifier: Apache-2.0
// Hybrid sharding: what collectives inside a node lose while the same ranks sum over nodes. Both leave by the GPU's own
// port.
#pragma once

#include "analyzer/edits/edit.h"
#include "analyzer/job/analysis.h"
#include "analyzer/replay/task_graph.h"

namespace rankscope::edits {

/// Whether the graph has a collective inside a node beside a sum over its replicas. Its times then hold what they cost
/// each other.
bool besideReplicas(const replay::TaskGraph& graph, const job::Analysis& analysis);

/// Lengthens collectives of sharded layers and sums over replicas where they run beside each other, in a graph whose
/// times are of collectives alone. Two flows have equal shares of a port, which lets through what the faster of both
/// reaches alone; a flow that the network holds below its share loses nothing. A job that never had both at a time
/// shows neither this nor that they have ports of their own: the outlook `cheap` is that they do not slow each other.
void sharePorts(replay::TaskGraph& graph, const job::Analysis& analysis, EditEffect& effect);

}  // namespace rankscope::edits

// SPDX-License-Identifier: Apache-2.0
// Transfers that take another time. A kernel that carries messages to several peers is taken apart into what those with
// each peer take, and put together again: the shortest is the transfer's duration, what the others take longer stands
// in its lead and in the delays of its edges (task_graph.h).
#pragma once

#include <functional>

#include "analyzer/edits/graph_view.h"

namespace rankscope::edits {

/// What it takes from now on, ns. `part`: of a kernel with several peers, the messages with one of them.
using TransferTime = std::function<int64_t(const TransferTask& part, const replay::Exchange& exchange, int64_t ns)>;

/// Each transfer of the graph, and of messages each peer's part of it.
void changeTransfers(replay::TaskGraph& graph, const TransferTime& newNs);

/// The same factor for all messages that a transfer carries.
void scaleTransfer(replay::TaskGraph& graph, replay::TaskId transfer, double factor);

}  // namespace rankscope::edits

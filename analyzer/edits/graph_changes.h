// SPDX-License-Identifier: Apache-2.0
// Transfers that take another time. A kernel that carries messages to several peers is taken apart into what those with
// each peer take, and put together again: the shortest is the transfer's duration, what the others take longer stands
// in its lead and in the delays of its edges (task_graph.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "analyzer/edits/edit.h"
#include "analyzer/edits/graph_view.h"
#include "analyzer/facts/intervals.h"
#include "analyzer/job/analysis.h"

namespace rankscope::edits {

/// What it takes from now on, ns. `part`: of a kernel with several peers, the messages with one of them.
using TransferTime = std::function<int64_t(const TransferTask& part, const Exchange& exchange, int64_t ns)>;

/// Each transfer of the graph, and of messages each peer's part of it.
void changeTransfers(TaskGraph& graph, const TransferTime& newNs);

/// The same factor for all messages that a transfer carries.
void scaleTransfer(TaskGraph& graph, TaskId transfer, double factor);

/// The graph that was drafted. Throws EditError, which says `circle`, where work would wait for itself.
TaskGraph sealed(GraphDraft&& draft, const char* circle, std::vector<TaskId>* numbers = nullptr);

/// Of a link that two collectives of one communicator use at a time: each keeps as much in flight as the other, so that
/// they get equal shares of it. Seen on virtual GPUs alone, which share links so; no recording of others has it.
inline constexpr double kHalfTheLink = 0.5;

/// By exchange: how long its transfer runs beside those of its communicator that `counts` holds for, on other streams,
/// ns. Of the member that does so least: all wait for the one that loses least. 0 for messages.
std::vector<int64_t> besideOthersNs(const TaskGraph& graph, const Schedule& schedule,
                                    const std::function<bool(const Exchange&)>& counts);

/// It is no exchange any more: later edits do not bring it back.
void removeExchange(Exchange& exchange);

/// A collective more: its join, an `info`, waits for all arrivals, and all transfers for it.
void joinCollective(GraphDraft& draft, const TaskInfo& info, Exchange exchange,
                    const std::vector<ExchangeMember>& members);

/// Copies that are to run beside compute: by task, how long they then take, ns.
using CopiesAside = std::unordered_map<TaskId, int64_t>;

/// Puts these copies on a stream of their own, one a rank, as the host launches them. They are for the next step: the
/// stream they were on goes on without them, and waits for them where the next step begins on it. A step therefore
/// takes as long as its compute or as its copies, whichever is longer. Copies that no call is known of stay in their
/// place, with their new durations. Throws EditError when work would wait for itself.
void putAside(TaskGraph& graph, const CopiesAside& copies);

// Transfers that are slower beside something else.

/// By rank: when what slows its transfers is under way.
using Busy = std::map<int, facts::CoveredLength>;

/// A longer transfer moves those behind it: so often at most is a graph played until its transfers settle.
inline constexpr int kSettlingPasses = 16;

/// The collective takes what it takes alone (`aloneNs`, by task), and for each ns of it beside `others` `loss` (under
/// 0.5) ns more. All members wait for the one that loses most. By how much that changes the longest of them, ns.
int64_t lengthen(TaskGraph& graph, const Exchange& exchange, const std::vector<int64_t>& aloneNs,
                 const Schedule& schedule, const Busy& others, double loss);

// Hybrid sharding: what collectives inside a node lose while the same ranks sum over nodes. Both leave by the GPU's own
// port.

/// Sums over the replicas of sharded layers, and what these layers are gathered and reduced by, inside a node.
bool isSumOfReplicas(const Analysis& analysis, const Exchange& exchange);
bool isOfShards(const Analysis& analysis, const Exchange& exchange);

/// Whether the graph has a collective inside a node beside a sum over its replicas. Its times then hold what they cost
/// each other.
bool besideReplicas(const TaskGraph& graph, const Analysis& analysis);

/// Lengthens collectives of sharded layers and sums over replicas where they run beside each other, in a graph whose
/// times are of collectives alone. Two flows have equal shares of a port, which lets through what the faster of both
/// reaches alone; a flow that the network holds below its share loses nothing. A job that never had both at a time
/// shows neither this nor that they have ports of their own: the outlook `cheap` is that they do not slow each other.
void sharePorts(TaskGraph& graph, const Analysis& analysis, EditEffect& effect);

}  // namespace rankscope::edits

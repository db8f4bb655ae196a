// SPDX-License-Identifier: Apache-2.0
// What made the difference between two sides, told from what changed: work, speed, messages, links, overlap, the host.
#pragma once

#include <vector>

#include "analyzer/compare/comparison.h"
#include "analyzer/compare/side_means.h"

namespace rankscope::compare {

/// Kinds (ChangeCause::kind), each with the diagnosis that tells more about it:
///   compute     straggler RS301, slow_node RS302, uneven_work RS304, stage_imbalance RS102, contention RS209,
///               slower_compute, more_work, other_kernels
///   messages    smaller_buckets RS202, larger_buckets RS201, full_precision RS210, redundant_communication RS206,
///               more_bytes RS203
///   links       slower_link RS208 (RS204: all of them), slower_network RS204, slower_p2p RS103, algorithm RS205,
///               group_spans_nodes RS207
///   overlap     lost_overlap RS201, late_launch RS201
///   host        slow_input RS403, synchronisation RS402, allocator RS404, launch_bound RS401, pageable_copies RS405,
///               copies, stalls RS303
///   schedule    pipeline_schedule RS101
///   else        unknown
///
/// `changeNs` is not zero. Of a faster step the causes are told with the sides changed over, what was lost before and
/// is not any more, and `ns` is negative. Parts of the attribution have one; causes of the same kind and ranks are one
/// that names its places, and those that are worth kWorthACause of the change are told. Largest first.
std::vector<ChangeCause> causesOf(const SideMeans& base, const SideMeans& now,
                                  const std::vector<FindingChange>& findings, double changeNs);

}  // namespace rankscope::compare

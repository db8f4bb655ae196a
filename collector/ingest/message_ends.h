// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "collector/ingest/instance_groups.h"

namespace rankscope::collector {

/// The messages between hosts with whose end both their kernels end. A kernel that carries several messages (a group of
/// sends and receives) leaves with the last of them, so that the two kernels of a message may end far apart. It is told
/// by one host's clock alone: each other message of the kernel has a peer on the same host whose kernel had ended
/// before. Where the other peer is on another host, or a call of the kernel is not paired, nothing is told.
/// `hostOfSummary`: by summary.
std::vector<MessagePair> messagesThatEndTogether(const std::vector<RankSummary>& summaries,
                                                 const std::vector<MessagePair>& messages,
                                                 const std::vector<int32_t>& hostOfSummary);

}  // namespace rankscope::collector

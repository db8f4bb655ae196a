// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "collector/ingest/communicator_set.h"

namespace rankscope::collector {

/// One member's call in an instance.
struct MemberCall {
    int32_t communicator = 0;  ///< index in the CommunicatorSet
    int64_t seq = 0;
    int32_t summary = 0;
    int32_t call = 0;  ///< index in that summary's calls
};

/// Calls of one instance: [first, last) of InstanceGroups::calls.
struct InstanceGroup {
    size_t first = 0;
    size_t last = 0;
};

/// Collectives of all ranks, the calls of one instance side by side: by (communicator, seq, rank).
struct InstanceGroups {
    std::vector<MemberCall> calls;
    std::vector<InstanceGroup> groups;
};

InstanceGroups groupCollectives(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators);

/// One message, as far as it was recorded: call indices are -1 for a side that was not.
struct MessagePair {
    int32_t communicator = 0;
    int32_t srcCommRank = 0;
    int32_t dstCommRank = 0;
    int64_t seq = 0;
    int32_t sendSummary = -1, sendCall = -1;
    int32_t recvSummary = -1, recvCall = -1;
};

/// Sends with their receives, by (communicator, source, destination, seq).
std::vector<MessagePair> pairMessages(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators);

}  // namespace rankscope::collector

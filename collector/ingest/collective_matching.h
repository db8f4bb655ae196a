// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "collector/ingest/clock_alignment.h"
#include "collector/ingest/row_ids.h"

namespace rankscope::collector {

/// Everything the matching needs, by reference; must outlive the call.
struct JoinedRanks {
    const std::vector<RankSummary>& summaries;
    const CommunicatorSet& communicators;
    const HostClocks& clocks;
    const RowIds& ids;
    const std::vector<int64_t>& communicatorIds;  ///< trace id by index in the CommunicatorSet
};

struct MatchedCollectives {
    std::vector<store::Collective> collectives;    ///< by (communicator, seq); id 1, 2…
    std::vector<store::CollectiveMember> members;  ///< by (collective, rank)
    std::vector<store::Loss> losses;
    std::vector<int32_t> disagreeing;  ///< ranks whose call was not that of most members, in the first collective of a
                                       ///< communicator where calls differ
};

/// Trace ids 1, 2… of the communicators, by (first use on the job clock, smallest member, hash).
std::vector<int64_t> orderCommunicators(const std::vector<RankSummary>& summaries, const CommunicatorSet& communicators,
                                        const HostClocks& clocks);

/// Waits and transfers as diagnoses.md defines them; they stay NULL where not every member's kernel is recorded.
/// Members that disagree on op, size or type, and instances with missing members, are incomplete and counted as loss
/// `unmatched_collective`.
MatchedCollectives matchCollectives(const JoinedRanks& ranks, const InstanceGroups& groups);

struct MatchedMessages {
    std::vector<store::P2p> messages;
    std::vector<store::Loss> losses;
};

MatchedMessages matchMessages(const JoinedRanks& ranks, const std::vector<MessagePair>& pairs);

}  // namespace rankscope::collector

// SPDX-License-Identifier: Apache-2.0
// What the dumps of several ranks tell only together: members of groups that a dump does not list, whose counters
// count messages, and which send a receive belongs to.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// The small part of a dump that stays in memory for all ranks.
struct DumpedCalls {
    struct Message {
        size_t index = 0;  ///< into RankRecording::ncclCalls
        int32_t communicator = -1;
        int32_t peer = -1;  ///< rank in the group
        bool isSend = false;
        bool ended = false;
    };
    int32_t rank = -1;
    bool fromStart = false, knowsGroups = false;
    std::vector<LocalCommunicator> communicators;
    std::vector<LocalRecorderGroup> groups;
    std::vector<Message> messages;  ///< in the order of the calls
};

DumpedCalls collectDumpedCalls(const RankRecording& recording);

/// What joining the dumps found for one of them.
struct DumpPlan {
    std::vector<LocalCommunicator> communicators;  ///< all of its own, completed, and those that it never called on
    std::vector<LocalRecorderGroup> groups;
    std::vector<std::pair<size_t, int64_t>> numbers;  ///< of messages: index of the call, and its seq
};

/// One plan per dump. The k-th send to a peer belongs to the k-th receive from it. Where recorders have dropped their
/// first calls, both sides count from the first that has not ended: what one side has ended, the other has begun.
std::vector<DumpPlan> joinDumps(std::vector<DumpedCalls> dumps);

void applyPlan(const DumpPlan& plan, RankRecording& recording);

}  // namespace rankscope::collector

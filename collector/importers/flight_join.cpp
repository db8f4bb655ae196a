// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/flight_join.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace rankscope::collector {

namespace {

/// Where a group was told whole.
struct KnownGroup {
    LocalCommunicator communicator;
    LocalRecorderGroup group;
};

int32_t placeIn(const std::vector<int32_t>& members, int32_t rank) {
    const auto place = std::ranges::find(members, rank);
    return place == members.end() ? -1 : static_cast<int32_t>(place - members.begin());
}

void adopt(const KnownGroup& known, int32_t rank, LocalCommunicator& communicator, LocalRecorderGroup& group) {
    communicator.hash = known.communicator.hash;
    communicator.nRanks = known.communicator.nRanks;
    communicator.commRank = placeIn(known.group.members, rank);
    group.members = known.group.members;
}

/// Groups without members take them from the dumps that tell them; where none does, from who called on them.
void completeGroups(std::vector<DumpedCalls>& dumps) {
    std::map<uint64_t, KnownGroup> told;
    std::map<std::string, std::vector<int32_t>> callers;  // by key, ascending
    for (const DumpedCalls& dump : dumps)
        for (size_t i = 0; i < dump.groups.size(); ++i) {
            const LocalCommunicator& communicator = dump.communicators[i];
            if (!dump.groups[i].members.empty())
                told.try_emplace(communicator.hash, KnownGroup{communicator, dump.groups[i]});
            callers[dump.groups[i].key].push_back(dump.rank);
        }
    for (auto& [key, ranks] : callers) std::ranges::sort(ranks);
    for (DumpedCalls& dump : dumps) {
        std::set<uint64_t> own;
        for (size_t i = 0; i < dump.groups.size(); ++i) {
            LocalRecorderGroup& group = dump.groups[i];
            if (dump.communicators[i].commRank < 0) dump.communicators[i].commRank = placeIn(group.members, dump.rank);
            if (group.members.empty()) {
                const auto known = std::ranges::find_if(told, [&](const auto& entry) {
                    return entry.second.group.key == group.key && placeIn(entry.second.group.members, dump.rank) >= 0;
                });
                if (known != told.end()) {
                    adopt(known->second, dump.rank, dump.communicators[i], group);
                } else {
                    group.members = callers[group.key];
                    dump.communicators[i].nRanks = static_cast<int32_t>(group.members.size());
                    dump.communicators[i].commRank = placeIn(group.members, dump.rank);
                }
            }
            own.insert(dump.communicators[i].hash);
        }
        // A group is listed from its first call on: one that is not was never called on.
        if (!dump.knowsGroups) continue;
        for (const auto& [hash, known] : told) {
            if (own.contains(hash) || placeIn(known.group.members, dump.rank) < 0) continue;
            LocalCommunicator communicator = known.communicator;
            communicator.commRank = placeIn(known.group.members, dump.rank);
            LocalRecorderGroup group;
            group.communicator = static_cast<int32_t>(dump.communicators.size());
            group.key = known.group.key;
            group.members = known.group.members;
            group.enqueued = 0;
            dump.communicators.push_back(std::move(communicator));
            dump.groups.push_back(std::move(group));
        }
    }
}

/// The recorder's counters count what was called last, collective or message: only where no rank sends in the group are
/// they known to be the former.
void addCounters(std::vector<DumpedCalls>& dumps) {
    std::set<uint64_t> withMessages;
    for (const DumpedCalls& dump : dumps)
        for (const DumpedCalls::Message& message : dump.messages)
            withMessages.insert(dump.communicators[static_cast<size_t>(message.communicator)].hash);
    for (DumpedCalls& dump : dumps)
        for (size_t i = 0; i < dump.groups.size(); ++i) {
            LocalRecorderGroup& group = dump.groups[i];
            if (withMessages.contains(dump.communicators[i].hash)) continue;
            if (group.lastEnqueued) group.enqueued = std::max(group.enqueued.value_or(0), *group.lastEnqueued);
            if (group.lastCompleted) group.completed = std::max(group.completed.value_or(0), *group.lastCompleted);
        }
}

/// One direction between two members.
struct Direction {
    struct Side {
        size_t dump = 0;
        bool known = false, fromStart = false;
        std::vector<const DumpedCalls::Message*> messages;
        int64_t ended() const {
            const auto open = std::ranges::find(messages, false, &DumpedCalls::Message::ended);
            return open - messages.begin();
        }
    };
    Side sends, receives;
};

void numberMessages(const std::vector<DumpedCalls>& dumps, std::vector<DumpPlan>& plans) {
    std::map<std::tuple<uint64_t, int32_t, int32_t>, Direction> directions;  // by communicator, source, destination
    for (size_t d = 0; d < dumps.size(); ++d)
        for (const DumpedCalls::Message& message : dumps[d].messages) {
            const LocalCommunicator& communicator = dumps[d].communicators[static_cast<size_t>(message.communicator)];
            if (message.peer < 0 || communicator.commRank < 0) continue;
            const int32_t own = communicator.commRank;
            Direction& direction = directions[{communicator.hash, message.isSend ? own : message.peer,
                                               message.isSend ? message.peer : own}];
            Direction::Side& side = message.isSend ? direction.sends : direction.receives;
            side.dump = d;
            side.known = true;
            side.fromStart = dumps[d].fromStart;
            side.messages.push_back(&message);
        }
    for (const auto& [place, direction] : directions) {
        const auto& [sends, receives] = std::tie(direction.sends, direction.receives);
        const bool fromStart = (!sends.known || sends.fromStart) && (!receives.known || receives.fromStart);
        const int64_t first = std::max(sends.ended(), receives.ended());  // that has not ended
        for (const Direction::Side* side : {&sends, &receives}) {
            const int64_t shift = fromStart ? 0 : first - side->ended();
            for (size_t k = 0; k < side->messages.size(); ++k)
                plans[side->dump].numbers.emplace_back(side->messages[k]->index, static_cast<int64_t>(k) + shift);
        }
    }
}

}  // namespace

DumpedCalls collectDumpedCalls(const RankRecording& recording) {
    DumpedCalls result;
    result.rank = recording.rank;
    result.fromStart = recording.recorderFromStart;
    result.knowsGroups = recording.recorderKnowsGroups;
    result.communicators = recording.communicators;
    result.groups = recording.recorderGroups;
    for (const store::RecorderCall& told : recording.recorderCalls) {
        const store::NcclCall& call = recording.ncclCalls[static_cast<size_t>(told.callId)];
        if (!store::isP2p(call.op) || !call.communicatorId) continue;
        result.messages.push_back({static_cast<size_t>(told.callId), static_cast<int32_t>(*call.communicatorId),
                                   call.peer.value_or(-1), call.op == store::Op::send, told.state == "completed"});
    }
    return result;
}

std::vector<DumpPlan> joinDumps(std::vector<DumpedCalls> dumps) {
    completeGroups(dumps);
    addCounters(dumps);
    std::vector<DumpPlan> plans(dumps.size());
    numberMessages(dumps, plans);
    for (size_t d = 0; d < dumps.size(); ++d) {
        plans[d].communicators = std::move(dumps[d].communicators);
        plans[d].groups = std::move(dumps[d].groups);
    }
    return plans;
}

void applyPlan(const DumpPlan& plan, RankRecording& recording) {
    recording.communicators = plan.communicators;
    recording.recorderGroups = plan.groups;
    for (const auto& [index, seq] : plan.numbers) recording.ncclCalls[index].seq = seq;
}

}  // namespace rankscope::collector

// SPDX-License-Identifier: Apache-2.0
#include "collector/importers/flight_rank.h"

#include <algorithm>
#include <map>
#include <set>

#include "collector/importers/collective_vocabulary.h"

namespace rankscope::collector {

namespace {

constexpr std::string_view kBatchEnd = "coalesced";

const char* stateText(FlightState state) {
    return state == FlightState::completed ? "completed" : state == FlightState::started ? "started" : "scheduled";
}

/// The name, and the members where they are told: names alone may stand for several groups (split_group).
uint64_t hashOf(const FlightGroup& group) {
    uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; };
    for (const char c : group.name) mix(static_cast<unsigned char>(c));
    for (const int32_t member : group.ranks) mix(static_cast<uint64_t>(member) + 0x100);
    return hash;
}

class DumpedRank {
  public:
    DumpedRank(const FlightDump& dump, std::optional<int32_t> rank) : m_dump(dump) {
        m_result.header.rank = rank;
        m_result.events = dump.entries.size();
        for (const FlightGroup& group : dump.groups) addGroup(group, rank);
        findBatches();
    }

    FileRank take() {
        for (const FlightEntry& entry : m_dump.entries) {
            if (entry.isMessage) {
                addMessage(entry);
            } else {
                addCollective(entry);
            }
        }
        if (!m_dump.fromStart) forgetOldestSizes();
        count();
        m_result.header.worldSize = m_worldSize > 0 ? std::optional<int64_t>(m_worldSize) : std::nullopt;
        RankRecording& recording = m_result.recording;
        recording.recorderFromStart = m_dump.fromStart;
        recording.recorderKnowsGroups = m_dump.knowsGroups;
        recording.state = store::RankState::unknown;
        recording.process.endKind = "unknown";
        if (!m_dump.ncclVersion.empty()) recording.meta["nccl_version"] = m_dump.ncclVersion;
        if (!m_dump.version.empty()) recording.meta["torch_dump_version"] = m_dump.version;
        return std::move(m_result);
    }

  private:
    using Number = std::pair<size_t, int64_t>;  // group, and PyTorch's number of the call in it

    void addGroup(const FlightGroup& group, std::optional<int32_t> rank) {
        LocalCommunicator communicator;
        communicator.hash = hashOf(group);
        communicator.identity = "process_group";
        communicator.name = group.description.empty() ? group.name : group.description;
        communicator.nRanks = static_cast<int32_t>(group.ranks.size());
        const auto self = rank ? std::ranges::find(group.ranks, *rank) : group.ranks.end();
        if (self != group.ranks.end()) communicator.commRank = static_cast<int32_t>(self - group.ranks.begin());
        for (const int32_t member : group.ranks) m_worldSize = std::max<int64_t>(m_worldSize, int64_t{member} + 1);
        LocalRecorderGroup told;
        told.communicator = static_cast<int32_t>(m_result.recording.communicators.size());
        told.key = group.name + '\n' + group.description;
        told.members = group.ranks;
        told.lastEnqueued = group.lastEnqueued;
        told.lastCompleted = group.lastCompleted;
        m_result.recording.communicators.push_back(std::move(communicator));
        m_result.recording.recorderGroups.push_back(std::move(told));
    }

    /// Calls of a batch are never seen to start or end: what ends the batch is, and stands behind them.
    void findBatches() {
        std::map<Number, int> messages;
        for (const FlightEntry& entry : m_dump.entries) {
            if (!entry.isMessage) continue;
            const Number number{entry.group, entry.messageSeq};
            if (entry.operation == kBatchEnd)
                m_batches[number] = &entry;
            else if (++messages[number] == 2)
                m_batches.try_emplace(number, nullptr);
            int64_t& last = m_lastMessage[entry.group];
            last = std::max(last, entry.messageSeq);
        }
        int64_t next = 0;
        for (const auto& [number, end] : m_batches) {
            m_batchIds[number] = next++;
            m_withBatches.insert(number.first);
        }
    }

    /// Dumps of what is active leave out the ends of batches that have ended, and keep their calls, which never change.
    /// A message without such an end, in a group that sends in batches or whose counters say that all has ended, is one
    /// of these, but for the last: its batch may be being made.
    bool hasLostItsEnd(const FlightEntry& entry) const {
        const FlightGroup& group = m_dump.groups[entry.group];
        const int64_t last = m_lastMessage.at(entry.group);
        if (group.lastEnqueued && group.lastEnqueued == group.lastCompleted && *group.lastCompleted == last)
            return true;
        return m_withBatches.contains(entry.group) && entry.messageSeq < last;
    }

    store::NcclCall callOf(const FlightEntry& entry) const {
        store::NcclCall call;
        call.communicatorId = static_cast<int64_t>(entry.group);
        call.startNs = entry.createdNs;
        call.op = opFromTorchName(entry.operation);
        call.dataType = entry.dataType;
        call.count = entry.inElements;
        call.evidence = store::evidence::kImported;
        // Where a member tells only its own part, parts may differ.
        const bool uneven = entry.operation.find("_v") != std::string::npos;
        const size_t size = m_dump.groups[entry.group].ranks.size();
        if (!uneven)
            call.bytes = collectiveBytes(call.op, call.dataType, entry.inElements, entry.outElements,
                                         size > 0 ? std::optional(static_cast<int64_t>(size)) : std::nullopt);
        return call;
    }

    void push(const store::NcclCall& call, const FlightEntry& entry) {
        RankRecording& recording = m_result.recording;
        store::RecorderCall told;
        told.callId = static_cast<int64_t>(recording.ncclCalls.size());
        told.timeoutNs = entry.timeoutNs;
        if (!entry.place.empty()) told.place = entry.place;
        setState(entry, told);
        recording.ncclCalls.push_back(call);
        recording.recorderCalls.push_back(std::move(told));
    }

    static void setState(const FlightEntry& entry, store::RecorderCall& told) {
        told.state = stateText(entry.state);
        told.startedNs = entry.startedNs;
        told.completedNs = entry.completedNs;
    }

    void addMessage(const FlightEntry& entry) {
        if (entry.operation == kBatchEnd) return;
        store::NcclCall call = callOf(entry);
        if (!store::isP2p(call.op)) return addCollective(entry);
        call.peer = entry.peer;
        const auto batch = m_batches.find({entry.group, entry.messageSeq});
        if (batch != m_batches.end()) call.groupId = m_batchIds.at(batch->first);
        push(call, entry);
        if (batch != m_batches.end() && batch->second) {
            setState(*batch->second, m_result.recording.recorderCalls.back());
        } else if (entry.state == FlightState::scheduled && hasLostItsEnd(entry)) {
            m_result.recording.recorderCalls.back().state = stateText(FlightState::completed);
        }
    }

    /// Several entries of one number are one batch; the one without tensors ends it.
    void addCollective(const FlightEntry& entry) {
        store::NcclCall call = callOf(entry);
        call.seq = entry.collectiveSeq;
        const auto [known, isNew] =
            m_callOf.try_emplace({entry.group, entry.collectiveSeq}, m_result.recording.ncclCalls.size());
        if (isNew) return push(call, entry);
        store::NcclCall& whole = m_result.recording.ncclCalls[known->second];
        const bool isEnd = entry.operation.ends_with(kBatchEnd) && !entry.inElements && !entry.outElements;
        setState(entry, m_result.recording.recorderCalls[known->second]);
        if (isEnd) return;
        if (whole.op != call.op) whole.op = store::Op::unknown;
        if (whole.dataType != call.dataType) whole.dataType = store::DataType::unknown;
        const auto sum = [](std::optional<int64_t>& total, std::optional<int64_t> part) {
            int64_t value = 0;
            if (!total || !part || __builtin_add_overflow(*total, *part, &value)) {
                total.reset();
            } else {
                total = value;
            }
        };
        sum(whole.count, call.count);
        sum(whole.bytes, call.bytes);
    }

    /// A ring may have lost the first parts of the batch that it begins with, in each group.
    void forgetOldestSizes() {
        std::optional<size_t> group;
        for (const auto& [number, index] : m_callOf) {
            if (number.first == group) continue;
            group = number.first;
            m_result.recording.ncclCalls[index].count.reset();
            m_result.recording.ncclCalls[index].bytes.reset();
        }
    }

    /// How many collectives it called, as far as its calls tell; the recorder's counters are added where all dumps are
    /// known (flight_join.h).
    void count() {
        RankRecording& recording = m_result.recording;
        for (const FlightEntry& entry : m_dump.entries) {
            std::optional<int64_t>& enqueued = recording.recorderGroups[entry.group].enqueued;
            enqueued = std::max(enqueued.value_or(0), entry.collectiveSeq);
        }
        for (const store::RecorderCall& told : recording.recorderCalls) {
            const store::NcclCall& call = recording.ncclCalls[static_cast<size_t>(told.callId)];
            if (!call.seq || told.state != "completed") continue;
            std::optional<int64_t>& completed =
                recording.recorderGroups[static_cast<size_t>(*call.communicatorId)].completed;
            completed = std::max(completed.value_or(0), *call.seq);
        }
        for (LocalRecorderGroup& group : recording.recorderGroups) {
            if (!m_dump.isWhole) group.enqueued.reset();  // what was called last may be missing
            if (m_dump.fromStart && !group.enqueued) group.enqueued = 0;
        }
    }

    const FlightDump& m_dump;
    FileRank m_result;
    int64_t m_worldSize = 0;
    std::map<Number, const FlightEntry*> m_batches;  // of messages: what ends it; null: nothing did
    std::map<Number, int64_t> m_batchIds;
    std::map<size_t, int64_t> m_lastMessage;  // number of the last in each group
    std::set<size_t> m_withBatches;           // groups
    std::map<Number, size_t> m_callOf;        // of collectives
};

}  // namespace

FileRank rankFromDump(const FlightDump& dump, std::optional<int32_t> rank) {
    return DumpedRank(dump, rank).take();
}

}  // namespace rankscope::collector

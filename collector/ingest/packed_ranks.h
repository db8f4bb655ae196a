// SPDX-License-Identifier: Apache-2.0
// Fields of what goes between processes that collect together (collector/team/packing.h). A struct that gains a field
// does not compile until the field stands here, too.
#pragma once

#include "collector/ingest/capture_set.h"
#include "collector/ingest/rank_summary.h"
#include "collector/ingest/trace_tables.h"

namespace rankscope::store {

template <typename Visit>
void forEachField(Process& value, const Visit& visit) {
    auto& [id, hostId, pid, parentPid, attempt, executable, startNs, endNs, endKind, endCode, identitySource,
           captureFile] = value;
    visit(id, hostId, pid, parentPid, attempt, executable, startNs, endNs, endKind, endCode, identitySource,
          captureFile);
}

template <typename Visit>
void forEachField(FailedAllocation& value, const Visit& visit) {
    auto& [id, rank, refusedNs, bytes, call] = value;
    visit(id, rank, refusedNs, bytes, call);
}

template <typename Visit>
void forEachField(RecorderCall& value, const Visit& visit) {
    auto& [callId, state, startedNs, completedNs, timeoutNs, place] = value;
    visit(callId, state, startedNs, completedNs, timeoutNs, place);
}

template <typename Visit>
void forEachField(SourceStatus& value, const Visit& visit) {
    auto& [rank, source, state, code, message] = value;
    visit(rank, source, state, code, message);
}

template <typename Visit>
void forEachField(Loss& value, const Visit& visit) {
    auto& [id, kind, severity, rank, source, count, file, offset, message] = value;
    visit(id, kind, severity, rank, source, count, file, offset, message);
}

}  // namespace rankscope::store

namespace rankscope::collector {

template <typename Visit>
void forEachField(LocalThread& value, const Visit& visit) {
    auto& [tid, name] = value;
    visit(tid, name);
}

template <typename Visit>
void forEachField(LocalDevice& value, const Visit& visit) {
    auto& [ordinal, name, memoryBytes, multiprocessors, computeCapability] = value;
    visit(ordinal, name, memoryBytes, multiprocessors, computeCapability);
}

template <typename Visit>
void forEachField(LocalMachineLink& value, const Visit& visit) {
    auto& [device, kind, name, source, count, generation, bytesPerS] = value;
    visit(device, kind, name, source, count, generation, bytesPerS);
}

template <typename Visit>
void forEachField(LocalCommunicator& value, const Visit& visit) {
    auto& [hash, identity, commRank, nRanks, parent, name, createNs, destroyNs, endKind] = value;
    visit(hash, identity, commRank, nRanks, parent, name, createNs, destroyNs, endKind);
}

template <typename Visit>
void forEachField(LocalRecorderGroup& value, const Visit& visit) {
    auto& [communicator, key, members, enqueued, completed, lastEnqueued, lastCompleted] = value;
    visit(communicator, key, members, enqueued, completed, lastEnqueued, lastCompleted);
}

template <typename Visit>
void forEachField(RangeFact& value, const Visit& visit) {
    auto& [pattern, depth, startNs, endNs, deviceStartNs, deviceEndNs] = value;
    visit(pattern, depth, startNs, endNs, deviceStartNs, deviceEndNs);
}

template <typename Visit>
void forEachField(RankSummary& value, const Visit& visit) {
    auto& [rank, localRank, worldSize, device, busId, hostName, bootId, process, state, startUnixNs, startUnixAtNs,
           meta, streams, threads, devices, machineLinks, communicators, failedAllocations, recorderCalls,
           recorderGroups, recorderFromStart, sources, losses, rowCounts, firstNs, lastNs, deviceFirstNs, deviceLastNs,
           calls, ranges, computes, gaps, updateMarks, periodMarks] = value;
    visit(rank, localRank, worldSize, device, busId, hostName, bootId, process, state, startUnixNs, startUnixAtNs, meta,
          streams, threads, devices, machineLinks, communicators, failedAllocations, recorderCalls, recorderGroups,
          recorderFromStart, sources, losses, rowCounts, firstNs, lastNs, deviceFirstNs, deviceLastNs, calls, ranges,
          computes, gaps, updateMarks, periodMarks);
}

template <typename Visit>
void forEachField(RankTranslation& value, const Visit& visit) {
    auto& [clock, originNs, firstIds, threads, streams, communicators, names] = value;
    visit(clock, originNs, firstIds, threads, streams, communicators, names);
}

template <typename Visit>
void forEachField(CaptureFile& value, const Visit& visit) {
    auto& [path, name, directory, headCrc, readFrom] = value;
    visit(path, name, directory, headCrc, readFrom);
}

template <typename Visit>
void forEachField(CaptureGlance& value, const Visit& visit) {
    auto& [header, rankOfDevice, rank, worldSize, gpuRecords, ncclRecords, records] = value;
    visit(header, rankOfDevice, rank, worldSize, gpuRecords, ncclRecords, records);
}

template <typename Visit>
void forEachField(CaptureLook& value, const Visit& visit) {
    auto& [path, name, directory, process, readFrom, glance, error] = value;
    visit(path, name, directory, process, readFrom, glance, error);
}

template <typename Visit>
void forEachField(CaptureChoice& value, const Visit& visit) {
    auto& [path, name, rank, device, process, part, wentOn, readFrom] = value;
    visit(path, name, rank, device, process, part, wentOn, readFrom);
}

}  // namespace rankscope::collector

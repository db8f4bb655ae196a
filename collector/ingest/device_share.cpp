// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/device_share.h"

namespace rankscope::collector {

void keepDevice(const RawCapture& raw, int32_t device, RankRecording& recording) {
    const auto elsewhere = [&](int32_t stream) {
        return recording.streams[static_cast<size_t>(stream)].device != device;
    };
    std::vector<int64_t> place(recording.kernels.size(), -1);
    std::vector<store::Kernel> kernels;
    for (size_t i = 0; i < recording.kernels.size(); ++i) {
        if (elsewhere(recording.kernels[i].streamId)) continue;
        place[i] = static_cast<int64_t>(kernels.size());
        kernels.push_back(recording.kernels[i]);
    }
    recording.kernels = std::move(kernels);
    std::erase_if(recording.kernelSummaries, [&](const auto& row) { return elsewhere(row.streamId); });
    std::erase_if(recording.memcpys, [&](const auto& row) { return elsewhere(row.streamId); });
    std::erase_if(recording.memsets, [&](const auto& row) { return elsewhere(row.streamId); });
    std::erase_if(recording.cudaEvents, [&](const auto& row) { return elsewhere(row.streamId); });
    std::erase_if(recording.synchronizations,
                  [&](const auto& row) { return row.streamId && elsewhere(*row.streamId); });

    // Communicator indices of the recording follow the order in which the file first names them.
    std::vector<int32_t> deviceOf;
    std::map<uint32_t, size_t> known;
    for (const auto& record : raw.communicators) {
        const auto [entry, isNew] = known.try_emplace(record.index, deviceOf.size());
        isNew ? deviceOf.push_back(record.device) : void(deviceOf[entry->second] = record.device);
    }
    std::vector<int32_t> newIndex(recording.communicators.size(), -1);
    std::vector<LocalCommunicator> communicators;
    for (size_t i = 0; i < recording.communicators.size(); ++i) {
        if (i < deviceOf.size() && deviceOf[i] != device) continue;
        newIndex[i] = static_cast<int32_t>(communicators.size());
        communicators.push_back(recording.communicators[i]);
    }
    for (LocalCommunicator& communicator : communicators) {
        if (communicator.parent >= 0) communicator.parent = newIndex[static_cast<size_t>(communicator.parent)];
    }
    recording.communicators = std::move(communicators);
    const auto isElsewhere = [&](const auto& row) {
        return row.communicatorId && newIndex[static_cast<size_t>(*row.communicatorId)] < 0;
    };
    std::vector<int64_t> callPlace;
    int64_t kept = 0;
    for (const store::NcclCall& call : recording.ncclCalls) callPlace.push_back(isElsewhere(call) ? -1 : kept++);
    std::erase_if(recording.ncclCalls, isElsewhere);
    std::erase_if(recording.proxyOps, isElsewhere);
    for (store::ProxyOp& op : recording.proxyOps) {
        if (op.communicatorId) op.communicatorId = newIndex[static_cast<size_t>(*op.communicatorId)];
        if (op.callId) op.callId = callPlace[static_cast<size_t>(*op.callId)];
        if (op.callId && *op.callId < 0) op.callId.reset();
    }
    std::erase_if(recording.callGaps,
                  [&](const LocalCallGap& gap) { return newIndex[static_cast<size_t>(gap.communicator)] < 0; });
    for (LocalCallGap& gap : recording.callGaps) gap.communicator = newIndex[static_cast<size_t>(gap.communicator)];
    for (store::NcclCall& call : recording.ncclCalls) {
        if (call.communicatorId) call.communicatorId = newIndex[static_cast<size_t>(*call.communicatorId)];
        if (!call.kernelId) continue;
        call.kernelId = place[static_cast<size_t>(*call.kernelId)];
        if (*call.kernelId < 0) call.kernelId.reset();
    }
}

}  // namespace rankscope::collector

// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/device_share.h"

namespace rankscope::collector {

void keepDevice(const RawCapture& raw, int32_t device, RankRecording& recording) {
    const auto elsewhere = [&](int32_t stream) { return recording.streams[static_cast<size_t>(stream)].device != device; };
    std::vector<int64_t> place(recording.kernels.size(), -1);
    std::vector<store::Kernel> kernels;
    for (size_t i = 0; i < recording.kernels.size(); ++i) {
        if (elsewhere(recording.kernels[i].streamId)) continue;
        place[i] = static_cast<int64_t>(kernels.size());
        kernels.push_back(recording.kernels[i]);
    }
    recording.kernels = std::move(kernels);
    std::erase_if(recording.memcpys, [&](const auto& row) { return elsewhere(row.streamId); });
    std::erase_if(recording.memsets, [&](const auto& row) { return elsewhere(row.streamId); });
    std::erase_if(recording.cudaEvents, [&](const auto& row) { return elsewhere(row.streamId); });
    std::erase_if(recording.synchronizations, [&](const auto& row) { return row.streamId && elsewhere(*row.streamId); });

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
    std::erase_if(recording.ncclCalls, [&](const store::NcclCall& call) {
        return call.communicatorId && newIndex[static_cast<size_t>(*call.communicatorId)] < 0;
    });
    for (store::NcclCall& call : recording.ncclCalls) {
        if (call.communicatorId) call.communicatorId = newIndex[static_cast<size_t>(*call.communicatorId)];
        if (!call.kernelId) continue;
        call.kernelId = place[static_cast<size_t>(*call.kernelId)];
        if (*call.kernelId < 0) call.kernelId.reset();
    }
}

}  // namespace rankscope::collector

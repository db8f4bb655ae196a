// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/channel_kernels.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace rankscope::collector {
namespace {

struct Span {
    int64_t startNs = std::numeric_limits<int64_t>::max();
    int64_t endNs = std::numeric_limits<int64_t>::min();
    void add(int64_t start, int64_t end) {
        startNs = std::min(startNs, start);
        endNs = std::max(endNs, end);
    }
    bool empty() const { return endNs < startNs; }
};

/// A kernel waits in its stream for milliseconds, or for minutes behind a peer that hangs; not for an hour.
constexpr int64_t kMostQueuedNs = 3'600'000'000'000;

/// How far the device's clock is behind the host's, as far as calls tell.
int64_t shiftOf(const std::vector<Span>& spans, const std::vector<store::NcclCall*>& calls) {
    int64_t leastNs = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < spans.size(); ++i)
        if (!spans[i].empty()) leastNs = std::min(leastNs, spans[i].startNs - calls[i]->startNs);
    return leastNs < 0 || (leastNs > kMostQueuedNs && leastNs != std::numeric_limits<int64_t>::max()) ? -leastNs : 0;
}

}  // namespace

void addKernelsOfChannels(const RawCapture& raw, const std::multimap<PluginCallName, ChannelCall>& names,
                          const std::vector<std::optional<uint64_t>>& handles, std::vector<store::NcclCall*> calls,
                          RankRecording& recording) {
    std::vector<Span> spans(calls.size());
    for (const capture::PluginChannelRecord& record : raw.pluginChannels) {
        const auto [first, last] = names.equal_range({record.commHash, record.seq});
        const ChannelCall* found = nullptr;  // the last that was made before, of those with this name
        for (auto name = first; name != last; ++name)
            if (found == nullptr || (name->second.startNs <= record.startNs && name->second.startNs > found->startNs))
                found = &name->second;
        if (found != nullptr) spans[found->call].add(record.startNs, record.endNs);
    }
    const int64_t shiftNs = shiftOf(spans, calls);

    std::map<uint64_t, int32_t> streams;                                    // by handle
    std::map<std::tuple<int32_t, int64_t, int32_t>, size_t> kernelOfGroup;  // by thread, group and stream
    const int32_t name = recording.strings.intern("ncclDevKernel (by its channels)");
    for (size_t i = 0; i < calls.size(); ++i) {
        if (spans[i].empty()) continue;
        store::NcclCall& call = *calls[i];
        const uint64_t handle = handles[i].value_or(0);
        const auto [stream, isNew] = streams.try_emplace(handle, static_cast<int32_t>(recording.streams.size()));
        if (isNew)
            recording.streams.push_back({std::max(recording.device, 0),
                                         0,
                                         static_cast<int64_t>(streams.size()),
                                         static_cast<int64_t>(handle),
                                         {}});
        call.streamId = stream->second;
        const int64_t startNs = spans[i].startNs + shiftNs, endNs = spans[i].endNs + shiftNs;
        size_t index = recording.kernels.size();
        if (call.groupId) {
            const auto [known, isFirst] = kernelOfGroup.try_emplace(
                {call.threadId.value_or(-1), *call.groupId, stream->second}, recording.kernels.size());
            index = known->second;
            if (!isFirst) {
                store::Kernel& kernel = recording.kernels[index];
                const int64_t kernelEndNs = std::max(kernel.startNs + kernel.durNs, endNs);
                kernel.startNs = std::min(kernel.startNs, startNs);
                kernel.durNs = kernelEndNs - kernel.startNs;
            }
        }
        if (index == recording.kernels.size()) {
            store::Kernel& kernel = recording.kernels.emplace_back();
            kernel.streamId = stream->second;
            kernel.startNs = startNs;
            kernel.durNs = endNs - startNs;
            kernel.nameId = name;
            kernel.nccl = store::NcclKernel::byCall;
        }
        call.kernelId = static_cast<int64_t>(index);
    }
}

}  // namespace rankscope::collector

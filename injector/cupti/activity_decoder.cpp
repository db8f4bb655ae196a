// SPDX-License-Identifier: Apache-2.0
#include "injector/cupti/activity_decoder.h"

#include <cupti.h>

#include <cstring>

namespace rankscope::injector::cupti {
namespace {

// The headers are one version's; these places are every version's.
static_assert(offsetof(CUpti_ActivityKernel10, start) == offsetof(CUpti_ActivityKernel4, start));
static_assert(offsetof(CUpti_ActivityKernel10, correlationId) == offsetof(CUpti_ActivityKernel4, correlationId));
static_assert(offsetof(CUpti_ActivityKernel10, name) == offsetof(CUpti_ActivityKernel4, name));
static_assert(offsetof(CUpti_ActivityKernel10, graphNodeId) == offsetof(CUpti_ActivityKernel6, graphNodeId));
static_assert(offsetof(CUpti_ActivityKernel10, graphId) == offsetof(CUpti_ActivityKernel7, graphId));
static_assert(offsetof(CUpti_ActivityMemcpy6, correlationId) == offsetof(CUpti_ActivityMemcpy5, correlationId));
static_assert(offsetof(CUpti_ActivityMemset4, correlationId) == offsetof(CUpti_ActivityMemset3, correlationId));

constexpr uint32_t kCudaEventTimes = 130000;  ///< CUpti_ActivityCudaEvent2 is there

/// Records come at any 8-byte boundary of a byte buffer.
template <typename Activity>
const Activity& view(const void* activity) noexcept {
    return *static_cast<const Activity*>(activity);
}

uint32_t duration(uint64_t start, uint64_t end) noexcept {
    if (end <= start) return 0;
    const uint64_t passed = end - start;
    return passed > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(passed);
}

uint32_t saturated(uint64_t value) noexcept {
    return value > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(value);
}

uint32_t positive(int32_t value) noexcept {
    return value < 1 ? 1 : static_cast<uint32_t>(value);
}

uint32_t blocksOf(const CUpti_ActivityKernel10& kernel) noexcept {
    return saturated(uint64_t{positive(kernel.gridX)} * positive(kernel.gridY) * positive(kernel.gridZ));
}

uint16_t threadsOf(const CUpti_ActivityKernel10& kernel) noexcept {
    return static_cast<uint16_t>(
        saturated(uint64_t{positive(kernel.blockX)} * positive(kernel.blockY) * positive(kernel.blockZ)));
}

capture::RecordHead headOf(capture::RecordType type, uint16_t aux) noexcept {
    return {type, 1, aux};
}

capture::StreamRecord recordOf(uint16_t index, uint32_t device, uint32_t context, uint32_t stream) noexcept {
    capture::StreamRecord record{};
    record.head = headOf(capture::RecordType::stream, index);
    record.device = static_cast<int32_t>(device);
    record.context = context;
    record.stream = stream;
    return record;
}

}  // namespace

uint16_t ActivityDecoder::streamOf(CaptureSink& sink, uint32_t device, uint32_t context, uint32_t stream) noexcept {
    bool isNew = false;
    const uint16_t index = m_streams.indexOf(device, context, stream, isNew);
    if (isNew) {
        BlockBuilder<8192> block(sink, capture::Source::cupti);
        block.add(recordOf(index, device, context, stream));
    }
    return index;
}

uint16_t ActivityDecoder::stream(ActivityBlock& block, uint32_t device, uint32_t context, uint32_t stream) noexcept {
    bool isNew = false;
    const uint16_t index = m_streams.indexOf(device, context, stream, isNew);
    if (isNew) block.add(recordOf(index, device, context, stream));
    return index;
}

uint16_t ActivityDecoder::stream(ActivityBlock& block, uint32_t context, uint32_t stream) noexcept {
    bool isNew = false;
    uint32_t device = 0;
    const uint16_t index = m_streams.indexInContext(context, stream, device, isNew);
    if (isNew) block.add(recordOf(index, device, context, stream));
    return index;
}

void ActivityDecoder::decodeKernel(const void* activity, ActivityBlock& block, StringTable& strings) noexcept {
    const auto& kernel = view<CUpti_ActivityKernel10>(activity);
    capture::KernelRecord record{};
    const char* name = kernel.name == nullptr ? "" : kernel.name;
    record.nameIdLow = static_cast<uint32_t>(block.addString(strings, name, std::strlen(name)));
    record.head =
        headOf(capture::RecordType::kernel, stream(block, kernel.deviceId, kernel.contextId, kernel.streamId));
    record.correlationId = kernel.correlationId;
    record.startNs = static_cast<int64_t>(kernel.start);
    const uint64_t passed = kernel.end > kernel.start ? kernel.end - kernel.start : 0;
    record.durNs = static_cast<uint32_t>(passed);
    record.gridBlocks = blocksOf(kernel);
    record.blockThreads = threadsOf(kernel);
    const bool needsMore = kernel.graphNodeId != 0 || kernel.graphId != 0 || passed > UINT32_MAX;
    record.flags = static_cast<uint16_t>((kernel.end == 0 ? 1 : 0) | (needsMore ? 2 : 0));
    block.add(record);
    if (!needsMore) return;
    capture::KernelGraphRecord more{};
    more.head = headOf(capture::RecordType::kernelGraph, record.head.aux);
    more.durHigh = static_cast<uint32_t>(passed >> 32);
    more.graphNodeId = kernel.graphNodeId;
    more.graphId = kernel.graphId;
    block.add(more);
}

bool ActivityDecoder::isOfDevice(const void* activity) noexcept {
    return view<CUpti_Activity>(activity).kind == CUPTI_ACTIVITY_KIND_DEVICE;
}

ActivityDecoder::Ended ActivityDecoder::decodeEnded(const void* activity, ActivityBlock& block,
                                                    EndedKernel& ended) noexcept {
    const auto kind = view<CUpti_Activity>(activity).kind;
    if (kind != CUPTI_ACTIVITY_KIND_KERNEL && kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return Ended::noKernel;
    const auto& kernel = view<CUpti_ActivityKernel10>(activity);
    if (kernel.start == 0 || kernel.end < kernel.start) return Ended::untimed;
    ended = {kernel.name == nullptr ? "" : kernel.name,
             static_cast<int64_t>(kernel.start),
             static_cast<int64_t>(kernel.end),
             blocksOf(kernel),
             threadsOf(kernel),
             stream(block, kernel.deviceId, kernel.contextId, kernel.streamId),
             static_cast<uint16_t>(kernel.deviceId)};
    return Ended::kernel;
}

void ActivityDecoder::decode(const void* activity, ActivityBlock& block, StringTable& strings) noexcept {
    // Copies within a device and between two have the same fields in two layouts.
    const auto decodeCopy = [&](const auto& copy) {
        capture::MemcpyRecord record{};
        record.head = headOf(capture::RecordType::memcpy, stream(block, copy.deviceId, copy.contextId, copy.streamId));
        record.correlationId = copy.correlationId;
        record.startNs = static_cast<int64_t>(copy.start);
        record.durNs = duration(copy.start, copy.end);
        record.copyKind = copy.copyKind;
        record.srcKind = copy.srcKind;
        record.dstKind = copy.dstKind;
        record.flags = copy.flags & 1;
        record.bytes = copy.bytes;
        block.add(record);
    };
    switch (view<CUpti_Activity>(activity).kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
            decodeKernel(activity, block, strings);
            break;
        case CUPTI_ACTIVITY_KIND_MEMCPY:
            decodeCopy(view<CUpti_ActivityMemcpy6>(activity));
            break;
        case CUPTI_ACTIVITY_KIND_MEMCPY2:
            decodeCopy(view<CUpti_ActivityMemcpyPtoP4>(activity));
            break;
        case CUPTI_ACTIVITY_KIND_MEMSET: {
            const auto& set = view<CUpti_ActivityMemset4>(activity);
            capture::MemsetRecord record{};
            record.head = headOf(capture::RecordType::memset, stream(block, set.deviceId, set.contextId, set.streamId));
            record.correlationId = set.correlationId;
            record.startNs = static_cast<int64_t>(set.start);
            record.durNs = duration(set.start, set.end);
            record.value = set.value;
            record.bytes = set.bytes;
            block.add(record);
            break;
        }
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER: {
            const auto& api = view<CUpti_ActivityAPI>(activity);
            capture::CuptiApiRecord record{};
            record.head = headOf(capture::RecordType::cuptiApi, static_cast<uint16_t>(api.cbid));
            record.correlationId = api.correlationId;
            record.startNs = static_cast<int64_t>(api.start);
            capture::setDurationNs(record, api.end > api.start ? api.end - api.start : 0);
            record.tid = static_cast<int32_t>(api.threadId);
            record.returnValue = api.returnValue;
            record.domain = api.kind == CUPTI_ACTIVITY_KIND_DRIVER ? 1 : 2;
            block.add(record);
            break;
        }
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
            const auto& wait = view<CUpti_ActivitySynchronization2>(activity);
            capture::SynchronizationRecord record{};
            const bool hasStream = wait.streamId != static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
            record.head = headOf(capture::RecordType::synchronization,
                                 hasStream ? stream(block, wait.contextId, wait.streamId) : StreamTable::kNone);
            record.correlationId = wait.correlationId;
            record.startNs = static_cast<int64_t>(wait.start);
            capture::setDurationNs(record, wait.end > wait.start ? wait.end - wait.start : 0);
            record.kind = static_cast<uint32_t>(wait.type);
            record.eventId = wait.cudaEventId;
            block.add(record);
            break;
        }
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
            const auto& external = view<CUpti_ActivityExternalCorrelation>(activity);
            if (external.externalKind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0) break;  // somebody else's ids
            capture::ExternalCorrelationRecord record{};
            record.head = headOf(capture::RecordType::externalCorrelation, 0);
            record.correlationId = external.correlationId;
            record.externalId = external.externalId;
            block.add(record);
            break;
        }
        case CUPTI_ACTIVITY_KIND_CUDA_EVENT: {
            const auto& event = view<CUpti_ActivityCudaEvent2>(activity);
            capture::CudaEventRecord record{};
            record.head = headOf(capture::RecordType::cudaEvent, stream(block, event.contextId, event.streamId));
            record.correlationId = event.correlationId;
            record.eventId = event.eventId;
            if (m_version >= kCudaEventTimes) record.timeNs = static_cast<int64_t>(event.deviceTimestamp);
            block.add(record);
            break;
        }
        case CUPTI_ACTIVITY_KIND_OVERHEAD: {
            const auto& overhead = view<CUpti_ActivityOverhead3>(activity);
            capture::OverheadRecord record{};
            const auto kind = static_cast<uint32_t>(overhead.overheadKind);
            record.head = headOf(capture::RecordType::overhead,
                                 static_cast<uint16_t>(kind > 0xffff ? kind >> 16 | capture::kOverheadOfCupti : kind));
            record.startNs = static_cast<int64_t>(overhead.start);
            record.durNs = overhead.end > overhead.start ? static_cast<int64_t>(overhead.end - overhead.start) : 0;
            block.add(record);
            break;
        }
        case CUPTI_ACTIVITY_KIND_DEVICE: {
            const auto& device = view<CUpti_ActivityDevice5>(activity);
            capture::DeviceRecord record{};
            const char* name = device.name == nullptr ? "" : device.name;
            record.head = headOf(capture::RecordType::device, 0);
            record.name = block.addString(strings, name, std::strlen(name));
            record.ordinal = static_cast<int32_t>(device.id);
            record.memoryBytes = device.globalMemorySize;
            record.multiprocessors = device.numMultiprocessors;
            record.computeCapability = device.computeCapabilityMajor * 10 + device.computeCapabilityMinor;
            block.add(record);
            break;
        }
        default:
            break;
    }
}

}  // namespace rankscope::injector::cupti

// SPDX-License-Identifier: Apache-2.0
// Finished operations as CUPTI's records.
#include <unistd.h>

#include "reference/vgpu/device/activity.h"

namespace rankscope::vgpu {
namespace {

/// What the records of kernels, copies and sets have in common.
template <typename Record>
Record timed(CUpti_ActivityKind kind, const OpReport& report, int64_t startNs, int64_t endNs) {
    Record record{};
    record.kind = kind;
    record.start = static_cast<uint64_t>(startNs);
    record.end = static_cast<uint64_t>(endNs);
    record.deviceId = report.deviceId;
    record.contextId = report.contextId;
    record.streamId = report.streamId;
    record.correlationId = report.correlation;
    record.graphId = report.graphId;
    return record;
}

CUpti_ActivityKernel10 kernelRecord(const OpReport& report, int64_t startNs, int64_t endNs) {
    auto record = timed<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, report, startNs, endNs);
    record.registersPerThread = report.registers;
    record.completed = record.end;
    record.gridX = report.grid[0];
    record.gridY = report.grid[1];
    record.gridZ = report.grid[2];
    record.blockX = report.block[0];
    record.blockY = report.block[1];
    record.blockZ = report.block[2];
    record.staticSharedMemory = static_cast<int32_t>(report.staticShared);
    record.dynamicSharedMemory = static_cast<int32_t>(report.dynamicShared);
    record.gridId = report.correlation;
    record.name = report.name;
    record.graphNodeId = report.graphNode;
    record.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
    return record;
}

CUpti_ActivityMemcpy6 copyRecord(const OpReport& report, int64_t startNs, int64_t endNs) {
    auto record = timed<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, report, startNs, endNs);
    record.copyKind = report.copyKind;
    record.srcKind = report.srcKind;
    record.dstKind = report.dstKind;
    record.flags = report.isAsync ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
    record.bytes = report.bytes;
    record.graphNodeId = report.graphNode;
    record.copyCount = 1;
    return record;
}

CUpti_ActivityMemset4 setRecord(const OpReport& report, int64_t startNs, int64_t endNs) {
    auto record = timed<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, report, startNs, endNs);
    record.value = report.value;
    record.bytes = report.bytes;
    record.flags = report.isAsync ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
    record.memoryKind = report.dstKind;
    record.graphNodeId = report.graphNode;
    return record;
}

template <typename Record>
void append(const Record& record) {
    appendRecord(&record, sizeof record);
}

}  // namespace

void recordOperation(const OpReport& report, int64_t startNs, int64_t endNs) {
    switch (report.kind) {
        case OpReport::Kind::kernel:
            return append(kernelRecord(report, startNs, endNs));
        case OpReport::Kind::copy:
            return append(copyRecord(report, startNs, endNs));
        case OpReport::Kind::memset:
            return append(setRecord(report, startNs, endNs));
        case OpReport::Kind::none:
            return;
    }
}

uint8_t activityMemoryKind(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::device:
            return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        case MemoryKind::pinned:
            return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
        case MemoryKind::managed:
            return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
        case MemoryKind::pageable:
            break;
    }
    return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

void recordMemory(const MemoryEvent& event, int64_t stampNs) {
    if (!activityWanted(CUPTI_ACTIVITY_KIND_MEMORY2)) return;
    CUpti_ActivityMemory4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    record.memoryOperationType = event.isRelease ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                                 : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    record.memoryKind = static_cast<CUpti_ActivityMemoryKind>(activityMemoryKind(event.kind));
    record.correlationId = event.correlation;
    record.address = reinterpret_cast<uint64_t>(event.address);
    record.bytes = event.bytes;
    record.timestamp = static_cast<uint64_t>(stampNs);
    record.processId = static_cast<uint32_t>(getpid());
    record.deviceId = event.deviceId;
    record.contextId = event.deviceId + 1;
    record.streamId = event.streamId;
    record.isAsync = event.isAsync;
    append(record);
}

void recordGraph(const OpReport& report, int64_t startNs, int64_t endNs) {
    auto record = timed<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, report, startNs, endNs);
    record.endDeviceId = report.deviceId;
    record.endContextId = report.contextId;
    append(record);
}

size_t recordBytes(CUpti_ActivityKind kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_KIND_KERNEL:
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
            return sizeof(CUpti_ActivityKernel10);
        case CUPTI_ACTIVITY_KIND_MEMCPY:
            return sizeof(CUpti_ActivityMemcpy6);
        case CUPTI_ACTIVITY_KIND_MEMSET:
            return sizeof(CUpti_ActivityMemset4);
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER:
            return sizeof(CUpti_ActivityAPI);
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
            return sizeof(CUpti_ActivitySynchronization2);
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
            return sizeof(CUpti_ActivityExternalCorrelation);
        case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
            return sizeof(CUpti_ActivityCudaEvent2);
        case CUPTI_ACTIVITY_KIND_MEMORY2:
            return sizeof(CUpti_ActivityMemory4);
        case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
            return sizeof(CUpti_ActivityGraphTrace2);
        default:
            return 0;
    }
}

}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
#include "injector/capture_format/record_traits.h"

#include <cstring>

namespace rankscope::capture {
namespace {

template <typename Record>
Record load(const void* bytes) noexcept {
    static_assert(sizeof(Record) <= kMaxTimedCells * kCellBytes,
                  "readers of stamps keep no more than this of a record");
    Record record;
    std::memcpy(&record, bytes, sizeof record);
    return record;
}

}  // namespace

size_t recordStructBytes(RecordType type) noexcept {
    switch (type) {
        case RecordType::padding:
            return sizeof(RecordHead);
        case RecordType::string:
            return sizeof(StringRecord);
        case RecordType::metadata:
            return sizeof(MetadataRecord);
        case RecordType::thread:
            return sizeof(ThreadRecord);
        case RecordType::apiCall:
            return sizeof(ApiCallRecord);
        case RecordType::ncclCall:
            return sizeof(NcclCallRecord);
        case RecordType::communicator:
            return sizeof(CommunicatorRecord);
        case RecordType::communicatorEnd:
            return sizeof(CommunicatorEndRecord);
        case RecordType::nvtxPush:
        case RecordType::nvtxPop:
        case RecordType::nvtxMark:
        case RecordType::nvtxStart:
        case RecordType::nvtxEnd:
            return sizeof(NvtxRecord);
        case RecordType::ncclPayload:
            return sizeof(NcclPayloadRecord);
        case RecordType::kernel:
            return sizeof(KernelRecord);
        case RecordType::memcpy:
            return sizeof(MemcpyRecord);
        case RecordType::memset:
            return sizeof(MemsetRecord);
        case RecordType::cuptiApi:
            return sizeof(CuptiApiRecord);
        case RecordType::synchronization:
            return sizeof(SynchronizationRecord);
        case RecordType::externalCorrelation:
            return sizeof(ExternalCorrelationRecord);
        case RecordType::stream:
            return sizeof(StreamRecord);
        case RecordType::device:
            return sizeof(DeviceRecord);
        case RecordType::cudaEvent:
            return sizeof(CudaEventRecord);
        case RecordType::graphTrace:
            return 0;
        case RecordType::pluginColl:
        case RecordType::pluginP2p:
            return sizeof(PluginCollRecord);
        case RecordType::pluginKernelChannel:
            return sizeof(PluginChannelRecord);
        case RecordType::pluginProxyOp:
            return sizeof(PluginProxyOpRecord);
        case RecordType::machineLink:
            return sizeof(MachineLinkRecord);
        case RecordType::loss:
            return sizeof(LossRecord);
        case RecordType::status:
            return sizeof(StatusRecord);
        case RecordType::kernelGraph:
            return sizeof(KernelGraphRecord);
        case RecordType::processEnd:
            return sizeof(ProcessEndRecord);
        case RecordType::overhead:
            return sizeof(OverheadRecord);
        case RecordType::allocation:
            return sizeof(AllocationRecord);
        case RecordType::ncclGroup:
            return sizeof(NcclGroupRecord);
        case RecordType::rankIdentity:
            return sizeof(RankIdentityRecord);
        case RecordType::fold:
            return sizeof(FoldRecord);
        case RecordType::detailSince:
            return sizeof(DetailSinceRecord);
        case RecordType::openRanges:
            return sizeof(OpenRangesRecord);
        case RecordType::callGap:
            return sizeof(CallGapRecord);
        case RecordType::kernelKey:
            return sizeof(KernelKeyRecord);
        case RecordType::kernelSummary:
            return sizeof(KernelSummaryRecord);
    }
    return 0;
}

int64_t recordTimeNs(const void* record) noexcept {
    switch (load<RecordHead>(record).type) {
        case RecordType::thread:
            return load<ThreadRecord>(record).firstNs;
        case RecordType::apiCall:
            return load<ApiCallRecord>(record).endNs;
        case RecordType::ncclCall:
            return load<NcclCallRecord>(record).endNs;
        case RecordType::communicator:
            return load<CommunicatorRecord>(record).timeNs;
        case RecordType::communicatorEnd:
            return load<CommunicatorEndRecord>(record).timeNs;
        case RecordType::nvtxPush:
        case RecordType::nvtxPop:
        case RecordType::nvtxMark:
        case RecordType::nvtxStart:
        case RecordType::nvtxEnd:
            return load<NvtxRecord>(record).timeNs;
        case RecordType::ncclPayload:
            return load<NcclPayloadRecord>(record).timeNs;
        case RecordType::kernel:
            return load<KernelRecord>(record).startNs + load<KernelRecord>(record).durNs;
        case RecordType::memcpy:
            return load<MemcpyRecord>(record).startNs + load<MemcpyRecord>(record).durNs;
        case RecordType::memset:
            return load<MemsetRecord>(record).startNs + load<MemsetRecord>(record).durNs;
        case RecordType::cuptiApi:
            return load<CuptiApiRecord>(record).startNs + durationNs(load<CuptiApiRecord>(record));
        case RecordType::synchronization:
            return load<SynchronizationRecord>(record).startNs + durationNs(load<SynchronizationRecord>(record));
        case RecordType::cudaEvent:
            return load<CudaEventRecord>(record).timeNs;
        case RecordType::pluginColl:
        case RecordType::pluginP2p:
            return load<PluginCollRecord>(record).endNs;
        case RecordType::pluginKernelChannel:
            return load<PluginChannelRecord>(record).endNs;
        case RecordType::pluginProxyOp:
            return load<PluginProxyOpRecord>(record).endNs;
        case RecordType::loss:
            return load<LossRecord>(record).lastNs;
        case RecordType::status:
            return load<StatusRecord>(record).timeNs;
        case RecordType::processEnd:
            return load<ProcessEndRecord>(record).timeNs;
        case RecordType::overhead:
            return load<OverheadRecord>(record).startNs + load<OverheadRecord>(record).durNs;
        case RecordType::allocation:
            return load<AllocationRecord>(record).timeNs;
        case RecordType::ncclGroup:
            return load<NcclGroupRecord>(record).endNs;
        case RecordType::rankIdentity:
            return load<RankIdentityRecord>(record).timeNs;
        case RecordType::fold:
            return load<FoldRecord>(record).lastNs;
        case RecordType::kernelSummary:
            return load<KernelSummaryRecord>(record).endNs;
        case RecordType::callGap:
            return load<CallGapRecord>(record).untilNs;
        default:
            return 0;
    }
}

bool isProgress(const void* record) noexcept {
    const auto head = load<RecordHead>(record);
    switch (head.type) {
        case RecordType::ncclCall:
        case RecordType::kernel:
        case RecordType::memcpy:
        case RecordType::memset:
        case RecordType::pluginColl:
        case RecordType::pluginP2p:
        case RecordType::pluginKernelChannel:
        case RecordType::pluginProxyOp:
            return true;
        case RecordType::apiCall: {
            const auto call = static_cast<CudaApi>(head.aux);
            return call >= CudaApi::launchKernel && call <= CudaApi::graphLaunch;
        }
        default:
            return false;
    }
}

size_t recordTextBytes(const void* record) noexcept {
    const auto head = load<RecordHead>(record);
    if (head.type == RecordType::string) return head.aux;
    if (head.type == RecordType::metadata) return size_t{head.aux} + load<MetadataRecord>(record).valueBytes;
    if (head.type == RecordType::fold) return load<FoldRecord>(record).bytes;
    if (head.type == RecordType::kernelSummary) return load<KernelSummaryRecord>(record).bytes;
    return 0;
}

}  // namespace rankscope::capture

// SPDX-License-Identifier: Apache-2.0
// Numbers written in the order of a stream.
#include <cuda.h>

#include <cstring>

#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/device/device_ops.h"
#include "reference/vgpu/engine/exchange.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kIssueNs = 2000;   // host time, as of cudaMemsetAsync
constexpr double kLatencyNs = 1500;  // device time, as of a copy

struct Numbers {
    CUdeviceptr to;
    uint32_t value;
    size_t count;
    size_t bytes() const { return count * sizeof value; }
};

void write(const Numbers& numbers) {
    for (const ByteRange& window : movedWindows(numbers.bytes()))
        for (size_t at = 0; at + sizeof numbers.value <= window.bytes; at += sizeof numbers.value)
            std::memcpy(reinterpret_cast<char*>(numbers.to) + window.offset + at, &numbers.value, sizeof numbers.value);
}

CUresult writeInOrder(ApiCall& call, CUstream handle, const Numbers& numbers, DeviceWork work) {
    LocalProcess& process = call.process();
    LocalStream* stream;
    {
        std::lock_guard guard(process.mutex());
        stream = resolveStream(process, call.clock().device, handle, false);
    }
    if (!stream) return call.end(CUDA_ERROR_INVALID_HANDLE);
    if (!numbers.to || numbers.to % sizeof numbers.value) return call.end(CUDA_ERROR_INVALID_VALUE);
    process.throttle(*stream);
    OpSpec spec;
    spec.kind = OpKind::copy;
    spec.workNs = static_cast<int64_t>(kLatencyNs + static_cast<double>(numbers.bytes()) / process.cluster().hbmGbps);
    work.issue = [&process, spec, numbers](LocalStream& on, const OpReport& as) {
        const StreamPoint point = process.submit(on, spec, as);
        enqueueEffect(point, [numbers] { write(numbers); });
        return point;
    };
    std::lock_guard guard(process.mutex());
    perform(call, *stream, std::move(work));
    return call.end(CUDA_SUCCESS);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    RANKSCOPE_DRIVER_CALL("cuMemsetD32Async", cuMemsetD32Async, kIssueNs);
    if (count == 0) return call.end(CUDA_SUCCESS);
    DeviceWork work;
    work.recordKind = CUPTI_ACTIVITY_KIND_MEMSET;
    work.report.kind = OpReport::Kind::memset;
    work.report.bytes = count * sizeof value;
    work.report.value = value;
    work.report.isAsync = true;
    return writeInOrder(call, stream, {to, value, count}, std::move(work));
}
CUresult CUDAAPI cuStreamWriteValue32(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned) {
    RANKSCOPE_DRIVER_CALL("cuStreamWriteValue32", cuStreamWriteValue32_v2, kIssueNs);
    return writeInOrder(call, stream, {to, value, 1}, {});
}

}  // extern "C"

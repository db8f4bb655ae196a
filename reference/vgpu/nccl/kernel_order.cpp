// SPDX-License-Identifier: Apache-2.0
#include "reference/vgpu/nccl/kernel_order.h"

#include <map>

namespace rankscope::vgpu {
namespace {

/// On an H200 CUPTI shows this call, and a wait for an event, 0.9 times as long as the record of one (traces/gpu-ddp).
constexpr int64_t kFunctionNs = kEventWaitNs;
constexpr int64_t kCaptureInfoNs = 400;

/// Streams of communicators that are gone, by device. Guarded by LocalProcess::mutex().
std::multimap<int, LocalStream*>& idleStreams() {
    static auto* streams = new std::multimap<int, LocalStream*>;
    return *streams;
}

LocalStream* takeStream(LocalProcess& process, int device) {
    std::lock_guard guard(process.mutex());
    const auto idle = idleStreams().find(device);
    if (idle == idleStreams().end()) return process.createStream(device, cudaStreamNonBlocking, 0);
    LocalStream* stream = idle->second;
    idleStreams().erase(idle);
    return stream;
}

/// `later` waits for what `earlier` was given so far.
void waitForStream(LocalStream& later, LocalStream& earlier, LocalEvent& event) {
    {
        RANKSCOPE_RUNTIME_CALL("cudaEventRecord", cudaEventRecord_v3020, kEventRecordNs);
        recordEvent(call, earlier, event);
    }
    RANKSCOPE_RUNTIME_CALL("cudaStreamWaitEvent", cudaStreamWaitEvent_v3020, kEventWaitNs);
    waitForEvent(call, later, event);
}

}  // namespace

void KernelOrder::begin(LocalProcess& process, LocalStream& stream) {
    if (stream.capture) return;
    if (!m_stream) {
        m_stream = takeStream(process, stream.device);
        m_event.id = nextEventId();
        m_event.flags = cudaEventDisableTiming;
        m_event.device = stream.device;
    }
    waitForStream(stream, *m_stream, m_event);
}

void KernelOrder::end(LocalStream& stream) {
    if (m_stream && !stream.capture) waitForStream(*m_stream, stream, m_event);
}

void KernelOrder::giveBack(LocalProcess& process) {
    std::lock_guard guard(process.mutex());
    if (m_stream) idleStreams().emplace(m_stream->device, m_stream);
    m_stream = nullptr;
}

void askForCapture() {
    RANKSCOPE_RUNTIME_QUESTION("cudaStreamGetCaptureInfo", cudaStreamGetCaptureInfo_v12030, kCaptureInfoNs);
}

void askForFunction() {
    RANKSCOPE_RUNTIME_QUESTION("cudaGetFuncBySymbol", cudaGetFuncBySymbol_v11000, kFunctionNs);
}

}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
// Waits and events of the CUDA runtime, and the calls that open and close the capture range.
#include "injector/export.h"
#include "injector/hooks/cuda_call.h"
#include "injector/real_symbol.h"

using namespace rankscope::injector;
using rankscope::capture::CudaApi;

RANKSCOPE_CUDA_HOOK(cudaStreamSynchronize, streamSynchronize, stream, (CudaStream stream), stream);
RANKSCOPE_CUDA_HOOK(cudaStreamSynchronize_ptsz, streamSynchronize, stream, (CudaStream stream), stream);
RANKSCOPE_CUDA_HOOK(cudaEventSynchronize, eventSynchronize, event, (CudaEvent event), event);
RANKSCOPE_CUDA_HOOK(cudaStreamWaitEvent, streamWaitEvent, stream, (CudaStream stream, CudaEvent event, unsigned flags),
                    stream, event, flags);
RANKSCOPE_CUDA_HOOK(cudaStreamWaitEvent_ptsz, streamWaitEvent, stream,
                    (CudaStream stream, CudaEvent event, unsigned flags), stream, event, flags);
RANKSCOPE_CUDA_HOOK(cudaEventRecord, eventRecord, stream, (CudaEvent event, CudaStream stream), event, stream);
RANKSCOPE_CUDA_HOOK(cudaEventRecord_ptsz, eventRecord, stream, (CudaEvent event, CudaStream stream), event, stream);
RANKSCOPE_CUDA_HOOK(cudaEventRecordWithFlags, eventRecord, stream, (CudaEvent event, CudaStream stream, unsigned flags),
                    event, stream, flags);
RANKSCOPE_CUDA_HOOK(cudaEventRecordWithFlags_ptsz, eventRecord, stream,
                    (CudaEvent event, CudaStream stream, unsigned flags), event, stream, flags);

RANKSCOPE_CUDA_FUNCTION(cudaDeviceSynchronize, (), (), if (!isRecordedCudaCall()) return real();
                        return recordCudaCall(CudaApi::deviceSynchronize, 0, [&] { return real(); }););

RANKSCOPE_EXPORT int cudaProfilerStart() {
    RANKSCOPE_REAL_CUDA(cudaProfilerStart);
    if (t_thread.depth == 0 && g_session.isAlive(Cause::gpu) &&
        g_session.config().range == CaptureRange::cudaProfilerApi)
        g_session.openRange();
    if (!isRecordedCudaCall()) return real();
    return recordCudaCall(CudaApi::profilerStart, 0, [&] { return real(); });
}

RANKSCOPE_EXPORT int cudaProfilerStop() {
    RANKSCOPE_REAL_CUDA(cudaProfilerStop);
    const bool recorded = isRecordedCudaCall();
    const int result = recorded ? recordCudaCall(CudaApi::profilerStop, 0, [&] { return real(); }) : real();
    if (t_thread.depth == 0 && g_session.isAlive(Cause::gpu) &&
        g_session.config().range == CaptureRange::cudaProfilerApi)
        g_session.closeRange();
    return result;
}

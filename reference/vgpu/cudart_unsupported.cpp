// SPDX-License-Identifier: Apache-2.0
// Stream capture and graphs: not modelled yet, and said so, so that a program can fall back to plain launches.
#include "reference/vgpu/api_call.h"
#include "reference/vgpu/memory.h"

using namespace rankscope::vgpu;

static cudaError_t refuse() { return lastError() = cudaErrorNotSupported; }

extern "C" {

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { return refuse(); }
cudaError_t CUDARTAPI cudaStreamBeginCapture_ptsz(cudaStream_t, cudaStreamCaptureMode) { return refuse(); }
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) { return refuse(); }
cudaError_t CUDARTAPI cudaStreamEndCapture_ptsz(cudaStream_t, cudaGraph_t*) { return refuse(); }
cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamIsCapturing_ptsz(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return cudaStreamIsCapturing(stream, status);
}
cudaError_t CUDARTAPI cudaGraphCreate(cudaGraph_t*, unsigned) { return refuse(); }
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) { return refuse(); }
cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t*, cudaGraph_t, unsigned long long) { return refuse(); }
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return refuse(); }
cudaError_t CUDARTAPI cudaGraphLaunch_ptsz(cudaGraphExec_t, cudaStream_t) { return refuse(); }
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t) { return refuse(); }
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t) { return refuse(); }

cudaError_t CUDARTAPI cudaGetSymbolAddress(void** address, const void* symbol) {
    if (!symbolBytes(symbol)) return lastError() = cudaErrorInvalidSymbol;
    *address = const_cast<void*>(symbol);    // the host's shadow of the variable is the variable
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetSymbolSize(size_t* bytes, const void* symbol) {
    *bytes = symbolBytes(symbol);
    return *bytes ? cudaSuccess : lastError() = cudaErrorInvalidSymbol;
}

}  // extern "C"

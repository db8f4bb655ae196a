// SPDX-License-Identifier: Apache-2.0
// Memory and events of other processes: every process has its own, and says so as a platform without IPC does.
#include "reference/vgpu/device/api_call.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kQuickNs = 400;

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
    RANKSCOPE_RUNTIME_CALL("cudaIpcGetMemHandle", cudaIpcGetMemHandle_v4010, kQuickNs);
    return call.end(cudaErrorNotSupported);
}
cudaError_t CUDARTAPI cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
    RANKSCOPE_RUNTIME_CALL("cudaIpcOpenMemHandle", cudaIpcOpenMemHandle_v4010, kQuickNs);
    return call.end(cudaErrorNotSupported);
}
cudaError_t CUDARTAPI cudaIpcCloseMemHandle(void*) {
    RANKSCOPE_RUNTIME_CALL("cudaIpcCloseMemHandle", cudaIpcCloseMemHandle_v4010, kQuickNs);
    return call.end(cudaErrorNotSupported);
}
cudaError_t CUDARTAPI cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) {
    RANKSCOPE_RUNTIME_CALL("cudaIpcGetEventHandle", cudaIpcGetEventHandle_v4010, kQuickNs);
    return call.end(cudaErrorNotSupported);
}
cudaError_t CUDARTAPI cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) {
    RANKSCOPE_RUNTIME_CALL("cudaIpcOpenEventHandle", cudaIpcOpenEventHandle_v4010, kQuickNs);
    return call.end(cudaErrorNotSupported);
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Addresses and sizes of __device__ variables.
#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/device/memory.h"

using namespace rankscope::vgpu;

extern "C" {

cudaError_t CUDARTAPI cudaGetSymbolAddress(void** address, const void* symbol) {
    if (!symbolBytes(symbol)) return lastError() = cudaErrorInvalidSymbol;
    *address = const_cast<void*>(symbol);  // the host's shadow of the variable is the variable
    return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetSymbolSize(size_t* bytes, const void* symbol) {
    *bytes = symbolBytes(symbol);
    return *bytes ? cudaSuccess : lastError() = cudaErrorInvalidSymbol;
}

}  // extern "C"

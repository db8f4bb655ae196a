// SPDX-License-Identifier: Apache-2.0
// The runtime's own way to load modules.
#include <fstream>
#include <iterator>

#include "reference/vgpu/device/api_call.h"
#include "reference/vgpu/device/kernel_registry.h"
#include "reference/vgpu/driver/module.h"

using namespace rankscope::vgpu;

namespace {

constexpr int64_t kQuickNs = 400, kLoadNs = 100'000;  // as cuModuleLoadData

cudaError_t load(ApiCall& call, cudaLibrary_t* library, const void* image) {
    if (!library || !image) return call.end(cudaErrorInvalidValue);
    *library = reinterpret_cast<cudaLibrary_t>(loadModule(image));
    return call.end(*library ? cudaSuccess : cudaErrorInvalidKernelImage);
}

Module* moduleOf(cudaLibrary_t library) {
    return reinterpret_cast<Module*>(library);
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaLibraryLoadData(cudaLibrary_t* library, const void* image, cudaJitOption*, void**, unsigned,
                                          cudaLibraryOption*, void**, unsigned) {
    RANKSCOPE_RUNTIME_CALL("cudaLibraryLoadData", cudaLibraryLoadData_v12060, kLoadNs);
    return load(call, library, image);
}
cudaError_t CUDARTAPI cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption*, void**,
                                              unsigned, cudaLibraryOption*, void**, unsigned) {
    RANKSCOPE_RUNTIME_CALL("cudaLibraryLoadFromFile", cudaLibraryLoadFromFile_v12060, kLoadNs);
    if (!path) return call.end(cudaErrorInvalidValue);
    std::ifstream file(path, std::ios::binary);
    if (!file) return call.end(cudaErrorFileNotFound);
    const std::string image{std::istreambuf_iterator<char>(file), {}};
    return image.size() < kSmallestImage ? call.end(cudaErrorInvalidKernelImage) : load(call, library, image.c_str());
}
cudaError_t CUDARTAPI cudaLibraryUnload(cudaLibrary_t library) {
    RANKSCOPE_RUNTIME_CALL("cudaLibraryUnload", cudaLibraryUnload_v12060, kLoadNs);
    return call.end(unloadModule(moduleOf(library)) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t CUDARTAPI cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
    RANKSCOPE_RUNTIME_CALL("cudaLibraryGetKernel", cudaLibraryGetKernel_v12060, kQuickNs);
    if (!kernel || !name) return call.end(cudaErrorInvalidValue);
    *kernel = reinterpret_cast<cudaKernel_t>(kernelOf(moduleOf(library), name));
    return call.end(*kernel ? cudaSuccess : cudaErrorSymbolNotFound);
}
cudaError_t CUDARTAPI cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute, int, int) {
    RANKSCOPE_RUNTIME_CALL("cudaKernelSetAttributeForDevice", cudaKernelSetAttributeForDevice_v12060, kQuickNs);
    return call.end(findKernel(kernel) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// The part of NVML that tells of versions, identities and the memory that processes hold.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "reference/vgpu/device/local_process.h"
#include "reference/vgpu/device/memory.h"
#include "reference/vgpu/nvml/nvml_handle.h"

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::nvml;

namespace {

/// nvmlProcessInfo_v1_t, which the function without a version fills.
struct ProcessInfo {
    uint32_t pid;
    uint64_t usedBytes;
};

/// nvmlPciInfo_t
struct PciInfo {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
};

constexpr uint32_t kUuidLength = 41;  // GPU-, 32 hexadecimal digits, 4 dashes, the end

void writeUuid(char* text, uint32_t length, uint32_t index) {
    std::snprintf(text, length, "GPU-76677075-0000-0000-0000-%012x", index);  // "vgpu"
}

}  // namespace

namespace rankscope::vgpu::nvml {

uint32_t ownNode() {
    static const auto node = static_cast<uint32_t>(std::max(0, nodeByEnvironment(describedCluster())));
    return node;
}

}  // namespace rankscope::vgpu::nvml

extern "C" {

const char* nvmlErrorString(int result) {
    switch (result) {
        case kSuccess:
            return "Success";
        case kUninitialized:
            return "Uninitialized";
        case kInvalidArgument:
            return "Invalid Argument";
        case kNotSupported:
            return "Not Supported";
        case kNotFound:
            return "Not Found";
        case kInsufficientSize:
            return "Insufficient Size";
        case kDriverNotLoaded:
            return "Driver Not Loaded";
        default:
            return "Unknown Error";
    }
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
    if (!version) return kInvalidArgument;
    *version = CUDART_VERSION;
    return kSuccess;
}

int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
    if (const int result = check(device); result != kSuccess) return result;
    if (!info) return kInvalidArgument;
    *info = {};
    info->domain = nodeOf(device);
    info->bus = indexOf(device) + 1;
    std::snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04x:%02x:00.0", info->domain & 0xffff,
                  info->bus & 0xff);
    std::snprintf(info->busId, sizeof info->busId, "%08x:%02x:00.0", info->domain, info->bus & 0xff);
    return kSuccess;
}

int nvmlDeviceGetUUID(void* device, char* text, uint32_t length) {
    if (const int result = check(device); result != kSuccess) return result;
    if (!text) return kInvalidArgument;
    if (length < kUuidLength) return kInsufficientSize;
    writeUuid(text, length, indexOf(device));
    return kSuccess;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
    if (g_begun == 0) return kUninitialized;
    if (!uuid || !device) return kInvalidArgument;
    for (uint32_t index = 0; index < deviceCount(); index++) {
        char own[kUuidLength];
        writeUuid(own, sizeof own, index);
        if (std::strcmp(uuid, own) != 0) continue;
        *device = handleOf(index);
        return kSuccess;
    }
    return kNotFound;
}

/// What each of two devices can do with the other's memory: everything.
int nvmlDeviceGetP2PStatus(void* device, void* peer, int, int* status) {
    constexpr int kOk = 0;
    if (const int result = check(device); result != kSuccess) return result;
    if (const int result = check(peer); result != kSuccess) return result;
    if (!status) return kInvalidArgument;
    *status = kOk;
    return kSuccess;
}
/// Devices form no fabric beyond their node: everything behind the structure's version, which holds its size, is zero.
int nvmlDeviceGetGpuFabricInfoV(void* device, uint32_t* info) {
    if (const int result = check(device); result != kSuccess) return result;
    if (!info) return kInvalidArgument;
    const size_t bytes = *info & 0xffffff;
    if (bytes < sizeof *info) return kInvalidArgument;
    std::memset(info + 1, 0, bytes - sizeof *info);
    return kSuccess;
}

/// The calling process, if it holds memory of the device. Others' memory is not known to it.
int nvmlDeviceGetComputeRunningProcesses(void* device, uint32_t* count, ProcessInfo* infos) {
    if (const int result = check(device); result != kSuccess) return result;
    if (!count) return kInvalidArgument;
    const uint64_t used = deviceMemoryUsed(static_cast<int>(indexOf(device)));
    const uint32_t room = *count;
    *count = used > 0 ? 1 : 0;
    if (used == 0) return kSuccess;
    if (room == 0 || !infos) return kInsufficientSize;
    infos[0] = {static_cast<uint32_t>(getpid()), used};
    return kSuccess;
}

}  // extern "C"

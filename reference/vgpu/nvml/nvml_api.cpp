// SPDX-License-Identifier: Apache-2.0
// The part of NVML that tells of links, for the devices of a virtual node. It asks the scenario alone and joins no job.
#include <cstdio>

#include "reference/vgpu/nvml/nvml_handle.h"

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::nvml;

namespace {

constexpr uint32_t kFieldCommonSpeed = 90,
                   kFieldLinkCount = 91;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, NVML_FI_DEV_NVLINK_LINK_COUNT
constexpr uint32_t kUnsignedInt = 1;      // NVML_VALUE_TYPE_UNSIGNED_INT
constexpr uint32_t kSwitch = 2;           // NVML_NVLINK_DEVICE_TYPE_SWITCH
constexpr uint32_t kVersion4 = 6;         // NVML_NVLINK_VERSION_4_0

struct FieldValue {
    uint32_t fieldId, scopeId;
    int64_t timestampUs, latencyUs;
    uint32_t valueType;
    int32_t status;
    union {
        uint32_t unsignedInt;
        uint64_t whole;
    } value;
};

}  // namespace

extern "C" {

int nvmlInit_v2(void) {
    return linksAreHidden() ? int{kDriverNotLoaded} : (g_begun++, int{kSuccess});
}
int nvmlShutdown(void) {
    return g_begun == 0 ? kUninitialized : (g_begun--, kSuccess);
}

int nvmlDeviceGetCount_v2(uint32_t* count) {
    if (g_begun == 0) return kUninitialized;
    return count ? (*count = deviceCount(), kSuccess) : kInvalidArgument;
}
int nvmlDeviceGetHandleByIndex_v2(uint32_t index, void** device) {
    if (g_begun == 0) return kUninitialized;
    return device && index < deviceCount() ? (*device = handleOf(index), kSuccess) : kInvalidArgument;
}
/// As cudaDeviceGetPCIBusId tells it: device n is on bus n + 1, in the domain of its node.
int nvmlDeviceGetHandleByPciBusId_v2(const char* busId, void** device) {
    unsigned domain = 0, bus = 0;
    if (g_begun == 0) return kUninitialized;
    if (!busId || !device || std::sscanf(busId, "%x:%x:", &domain, &bus) != 2) return kInvalidArgument;
    const bool isThere = bus >= 1 && bus <= deviceCount() && check(handleOf(bus - 1, domain)) == kSuccess;
    return isThere ? (*device = handleOf(bus - 1, domain), kSuccess) : kNotFound;
}

int nvmlDeviceGetNvLinkState(void* device, uint32_t link, uint32_t* isActive) {
    const Nvlinks links = nvlinksOf(describedCluster());
    if (check(device) == kSuccess && links.count == 0) return kNotSupported;
    return link < links.count ? answer(device, isActive, 1) : kInvalidArgument;
}
int nvmlDeviceGetNvLinkVersion(void* device, uint32_t link, uint32_t* version) {
    const Nvlinks links = nvlinksOf(describedCluster());
    if (check(device) == kSuccess && links.count == 0) return kNotSupported;
    return link < links.count ? answer(device, version, kVersion4) : kInvalidArgument;
}
/// GPUs are joined by switches, as where every one reaches every other at full rate.
int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, uint32_t link, uint32_t* type) {
    const Nvlinks links = nvlinksOf(describedCluster());
    if (check(device) == kSuccess && links.count == 0) return kNotSupported;
    return link < links.count ? answer(device, type, kSwitch) : kInvalidArgument;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, uint32_t, void*) {
    const int result = check(device);
    return result == kSuccess ? kNotSupported : result;  // a switch is no device of the node's own
}
int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
    if (const int result = check(device); result != kSuccess) return result;
    if (count < 1 || !values) return kInvalidArgument;
    const Nvlinks links = nvlinksOf(describedCluster());
    for (int i = 0; i < count; i++) {
        FieldValue& field = values[i];
        field.timestampUs = field.latencyUs = 0;
        field.valueType = kUnsignedInt;
        field.value.whole = 0;
        field.status = kNotSupported;
        if (links.count == 0 || (field.fieldId != kFieldCommonSpeed && field.fieldId != kFieldLinkCount)) continue;
        field.value.unsignedInt = field.fieldId == kFieldLinkCount ? links.count : links.megabytesPerS;
        field.status = kSuccess;
    }
    return kSuccess;
}

int nvmlDeviceGetCurrPcieLinkGeneration(void* device, uint32_t* generation) {
    return answer(device, generation, pcieLinkOf(describedCluster()).generation);
}
int nvmlDeviceGetMaxPcieLinkGeneration(void* device, uint32_t* generation) {
    return answer(device, generation, pcieLinkOf(describedCluster()).generation);
}
int nvmlDeviceGetCurrPcieLinkWidth(void* device, uint32_t* lanes) {
    return answer(device, lanes, pcieLinkOf(describedCluster()).lanes);
}

}  // extern "C"

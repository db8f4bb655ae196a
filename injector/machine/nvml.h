// SPDX-License-Identifier: Apache-2.0
// What we need of NVML (libnvidia-ml.so.1), declared here because jobs run where its header is not. By NVIDIA's "NVML
// API Reference Guide" of releases R470 to R580: Field Value Queries, Field Value Enums, NvLink Methods, Device
// Queries. The names below are in every driver since R450; each may be missing all the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::machine {

using NvmlDevice = void*;

/// nvmlFieldValue_t. The caller sets `fieldId` and, where the field is of one NVLink, `scopeId` (reserved before R470).
struct NvmlFieldValue {
    uint32_t fieldId;
    uint32_t scopeId;
    int64_t timestampUs;
    int64_t latencyUs;
    uint32_t valueType;
    int32_t status;  ///< of this field; `value` holds only with kNvmlSuccess
    union {
        uint32_t unsignedInt;
        uint64_t unsignedLongLong;
        double real;
    } value;
};
static_assert(sizeof(NvmlFieldValue) == 40 && offsetof(NvmlFieldValue, status) == 28 &&
              offsetof(NvmlFieldValue, value) == 32);

inline constexpr int kNvmlSuccess = 0;
inline constexpr uint32_t kNvmlUnsignedInt = 1;  // nvmlValueType_t
inline constexpr uint32_t kNvmlFieldCommonSpeed =
    90;  // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON: MB/s and direction of each active NVLink
inline constexpr uint32_t kNvmlFieldLinkSpeed = 164;  // NVML_FI_DEV_NVLINK_GET_SPEED: of the one in scopeId
inline constexpr uint32_t kNvmlMostLinks = 36;        // more than NVML_NVLINK_MAX_LINKS of any release so far

/// nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3.
struct NvmlPciInfo {
    char busIdLegacy[16];
    uint32_t domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];  ///< "00000000:3b:00.0"
};
static_assert(sizeof(NvmlPciInfo) == 68);

struct Nvml {
    int (*init)() = nullptr;  // nvmlInit_v2
    int (*shutdown)() = nullptr;
    int (*deviceCount)(uint32_t*) = nullptr;                        // nvmlDeviceGetCount_v2
    int (*deviceByIndex)(uint32_t, NvmlDevice*) = nullptr;          // nvmlDeviceGetHandleByIndex_v2
    int (*deviceByBusId)(const char*, NvmlDevice*) = nullptr;       // nvmlDeviceGetHandleByPciBusId_v2
    int (*pciInfo)(NvmlDevice, NvmlPciInfo*) = nullptr;             // nvmlDeviceGetPciInfo_v3
    int (*linkState)(NvmlDevice, uint32_t, uint32_t*) = nullptr;    // nvmlDeviceGetNvLinkState: 1 active
    int (*linkVersion)(NvmlDevice, uint32_t, uint32_t*) = nullptr;  // nvmlDeviceGetNvLinkVersion: nvmlNvlinkVersion_t
    int (*fieldValues)(NvmlDevice, int, NvmlFieldValue*) = nullptr;
    int (*pcieGeneration)(NvmlDevice, uint32_t*) = nullptr;     // nvmlDeviceGetCurrPcieLinkGeneration
    int (*pcieMaxGeneration)(NvmlDevice, uint32_t*) = nullptr;  // nvmlDeviceGetMaxPcieLinkGeneration
    int (*pcieWidth)(NvmlDevice, uint32_t*) = nullptr;          // nvmlDeviceGetCurrPcieLinkWidth
};

/// Opens the library by dlopen and finds its functions; it stays loaded. False: it is not there, or cannot be begun or
/// ended.
bool loadNvml(Nvml& nvml) noexcept;

}  // namespace rankscope::machine

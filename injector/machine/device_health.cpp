// SPDX-License-Identifier: Apache-2.0
#include "injector/machine/device_health.h"

#include <dlfcn.h>

namespace rankscope::machine {
namespace {

// NVML's API Reference Guide, R470 to R580.
constexpr int kSmClock = 1, kMemoryClock = 2;          // nvmlClockType_t
constexpr int kGpuSensor = 0;                          // nvmlTemperatureSensors_t
constexpr int kCorrected = 0, kUncorrected = 1;        // nvmlMemoryErrorType_t
constexpr int kVolatile = 0;                           // nvmlEccCounterType_t
constexpr int kLinkErrorCounters = 4;                  // nvmlNvLinkErrorCounter_t: replay, recovery, two CRCs
constexpr unsigned long long kXidCriticalError = 0x8;  // nvmlEventTypeXidCriticalError
constexpr uint32_t kFieldReplay = 161, kFieldRecovery = 162, kFieldCrc = 163;  // NVML_FI_DEV_NVLINK_ERROR_DL_*
constexpr uint32_t kUnsignedLongLong = 3;                                      // NVML_VALUE_TYPE_UNSIGNED_LONG_LONG

template <typename Number, typename Function, typename... Arguments>
std::optional<int64_t> asked(Function* function, NvmlDevice device, Arguments... arguments) noexcept {
    Number value{};
    if (function == nullptr || function(device, arguments..., &value) != kNvmlSuccess) return std::nullopt;
    return static_cast<int64_t>(value);
}

}  // namespace

bool HealthReader::begin() noexcept {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr || !loadNvml(m_nvml) || m_nvml.init() != kNvmlSuccess) return false;
    m_begun = true;
    const auto find = [library]<typename Function>(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(library, name));
    };
    find(m_clock, "nvmlDeviceGetClockInfo");
    find(m_maxClock, "nvmlDeviceGetMaxClockInfo");
    find(m_reasons, "nvmlDeviceGetCurrentClocksEventReasons");
    if (m_reasons == nullptr) find(m_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");  // before R535
    find(m_power, "nvmlDeviceGetPowerUsage");
    find(m_powerLimit, "nvmlDeviceGetEnforcedPowerLimit");
    find(m_temperature, "nvmlDeviceGetTemperature");
    find(m_eccErrors, "nvmlDeviceGetTotalEccErrors");
    find(m_memory, "nvmlDeviceGetMemoryInfo");
    find(m_utilization, "nvmlDeviceGetUtilizationRates");
    find(m_linkErrors, "nvmlDeviceGetNvLinkErrorCounter");
    find(m_createEvents, "nvmlEventSetCreate");
    find(m_registerEvents, "nvmlDeviceRegisterEvents");
    find(m_waitForEvent, "nvmlEventSetWait_v2");
    dlerror();
    return true;
}

HealthReader::~HealthReader() {
    if (m_begun) m_nvml.shutdown();
}

NvmlDevice HealthReader::find(const char* busId) noexcept {
    NvmlDevice device = nullptr;
    if (!m_begun || m_nvml.deviceByBusId == nullptr || m_nvml.deviceByBusId(busId, &device) != kNvmlSuccess)
        return nullptr;
    return device;
}

void HealthReader::watchXid(NvmlDevice device) noexcept {
    if (m_createEvents == nullptr || m_registerEvents == nullptr || m_waitForEvent == nullptr) return;
    if (m_events == nullptr && m_createEvents(&m_events) != kNvmlSuccess) m_events = nullptr;
    if (m_events != nullptr) m_registerEvents(device, kXidCriticalError, m_events);
}

std::optional<int64_t> HealthReader::nvlinkErrors(NvmlDevice device) noexcept {
    std::optional<int64_t> sum;
    if (m_nvml.linkState == nullptr) return sum;
    for (uint32_t link = 0; link < kNvmlMostLinks; ++link) {
        uint32_t state = 0;
        if (m_nvml.linkState(device, link, &state) != kNvmlSuccess) {
            if (link == 0) break;  // not a device with NVLinks
            continue;
        }
        if (state != 1) continue;
        bool isTold = false;
        for (int counter = 0; counter < kLinkErrorCounters; ++counter) {
            unsigned long long errors = 0;
            if (m_linkErrors == nullptr || m_linkErrors(device, link, counter, &errors) != kNvmlSuccess) continue;
            isTold = true;
            sum = sum.value_or(0) + static_cast<int64_t>(errors);
        }
        if (isTold || m_nvml.fieldValues == nullptr) continue;
        NvmlFieldValue fields[] = {{.fieldId = kFieldReplay, .scopeId = link},
                                   {.fieldId = kFieldRecovery, .scopeId = link},
                                   {.fieldId = kFieldCrc, .scopeId = link}};
        if (m_nvml.fieldValues(device, 3, fields) != kNvmlSuccess) continue;
        for (const NvmlFieldValue& field : fields) {
            if (field.status != kNvmlSuccess) continue;
            if (field.valueType == kUnsignedLongLong)
                sum = sum.value_or(0) + static_cast<int64_t>(field.value.unsignedLongLong);
            else if (field.valueType == kNvmlUnsignedInt)
                sum = sum.value_or(0) + field.value.unsignedInt;
        }
    }
    return sum;
}

DeviceHealth HealthReader::read(NvmlDevice device) noexcept {
    DeviceHealth health;
    if (!m_begun || device == nullptr) return health;
    health.smMhz = asked<unsigned>(m_clock, device, kSmClock);
    health.smMaxMhz = asked<unsigned>(m_maxClock, device, kSmClock);
    health.memoryMhz = asked<unsigned>(m_clock, device, kMemoryClock);
    health.memoryMaxMhz = asked<unsigned>(m_maxClock, device, kMemoryClock);
    health.clocksEventReasons = asked<unsigned long long>(m_reasons, device);
    health.powerMw = asked<unsigned>(m_power, device);
    health.powerLimitMw = asked<unsigned>(m_powerLimit, device);
    health.temperatureC = asked<unsigned>(m_temperature, device, kGpuSensor);
    if (Memory memory{}; m_memory != nullptr && m_memory(device, &memory) == kNvmlSuccess) {
        health.memoryUsedBytes = static_cast<int64_t>(memory.used);
        health.memoryTotalBytes = static_cast<int64_t>(memory.total);
    }
    if (Utilization busy{}; m_utilization != nullptr && m_utilization(device, &busy) == kNvmlSuccess)
        health.utilizationPercent = busy.gpu;
    return health;
}

DeviceHealth HealthReader::readWithCounters(NvmlDevice device) noexcept {
    DeviceHealth health = read(device);
    if (!m_begun || device == nullptr) return health;
    health.eccCorrected = asked<unsigned long long>(m_eccErrors, device, kCorrected, kVolatile);
    health.eccUncorrected = asked<unsigned long long>(m_eccErrors, device, kUncorrected, kVolatile);
    health.nvlinkErrors = nvlinkErrors(device);
    return health;
}

std::optional<XidEvent> HealthReader::nextXid() noexcept {
    Event event{};
    if (m_events == nullptr || m_waitForEvent(m_events, &event, 0) != kNvmlSuccess) return std::nullopt;
    if (event.type != kXidCriticalError) return std::nullopt;
    return XidEvent{event.device, static_cast<int64_t>(event.data)};
}

}  // namespace rankscope::machine

// SPDX-License-Identifier: Apache-2.0
// How a device is doing, by NVML. For a process beside the job: a driver that hangs never answers.
#pragma once

#include <cstdint>
#include <optional>

#include "injector/machine/nvml.h"

namespace rankscope::machine {

/// What NVML tells of a device at one moment. Nothing: it does not tell, as of what the device has not.
struct DeviceHealth {
    std::optional<int64_t> smMhz, smMaxMhz, memoryMhz, memoryMaxMhz;
    std::optional<int64_t> clocksEventReasons;  ///< bits as NVML's: ClocksEvent below
    std::optional<int64_t> powerMw, powerLimitMw;
    std::optional<int64_t> temperatureC;
    std::optional<int64_t> eccCorrected, eccUncorrected;  ///< since the driver was loaded
    std::optional<int64_t> nvlinkErrors;                  ///< replays, recoveries and CRC errors of all links
    std::optional<int64_t> memoryUsedBytes, memoryTotalBytes;
    std::optional<int64_t> utilizationPercent;  ///< of the time in which a kernel ran
};

/// nvmlClocksEventReasons ("Clocks Event Reasons" of NVML's API Reference; "Throttle Reasons" before R535).
enum ClocksEvent : int64_t {
    kGpuIdle = 0x1,
    kApplicationClocks = 0x2,
    kPowerCap = 0x4,
    kHardwareSlowdown = 0x8,
    kSyncBoost = 0x10,
    kThermalSoftware = 0x20,
    kThermalHardware = 0x40,
    kPowerBrake = 0x80,
    kDisplayClocks = 0x100,
};

/// Critical errors of devices (Xid), as NVML hands them to who waits for them.
struct XidEvent {
    NvmlDevice device = nullptr;
    int64_t xid = 0;
};

/// Asks NVML. Used by one thread.
class HealthReader {
  public:
    /// Loads and begins NVML. False: there is none, or it cannot be begun.
    bool begin() noexcept;
    ~HealthReader();
    HealthReader() = default;
    HealthReader(const HealthReader&) = delete;
    HealthReader& operator=(const HealthReader&) = delete;

    /// By its place on the bus, "0000:3b:00.0"; null: there is none.
    NvmlDevice find(const char* busId) noexcept;
    /// From now on its critical errors are told.
    void watchXid(NvmlDevice device) noexcept;
    /// All but the counters of errors.
    DeviceHealth read(NvmlDevice device) noexcept;
    /// With them: NVML is asked for each link by itself, some 70 times.
    DeviceHealth readWithCounters(NvmlDevice device) noexcept;
    /// One that has come since this was last asked; nothing when there is none. Does not wait.
    std::optional<XidEvent> nextXid() noexcept;

  private:
    struct Memory {
        unsigned long long total, free, used;
    };
    struct Utilization {
        unsigned gpu, memory;
    };
    /// nvmlEventData_t
    struct Event {
        NvmlDevice device;
        unsigned long long type, data;
        unsigned gpuInstance, computeInstance;
    };
    std::optional<int64_t> nvlinkErrors(NvmlDevice device) noexcept;

    Nvml m_nvml;
    bool m_begun = false;
    void* m_events = nullptr;
    int (*m_clock)(NvmlDevice, int, unsigned*) = nullptr;
    int (*m_maxClock)(NvmlDevice, int, unsigned*) = nullptr;
    int (*m_reasons)(NvmlDevice, unsigned long long*) = nullptr;
    int (*m_power)(NvmlDevice, unsigned*) = nullptr;
    int (*m_powerLimit)(NvmlDevice, unsigned*) = nullptr;
    int (*m_temperature)(NvmlDevice, int, unsigned*) = nullptr;
    int (*m_eccErrors)(NvmlDevice, int, int, unsigned long long*) = nullptr;
    int (*m_memory)(NvmlDevice, Memory*) = nullptr;
    int (*m_utilization)(NvmlDevice, Utilization*) = nullptr;
    int (*m_linkErrors)(NvmlDevice, unsigned, int, unsigned long long*) = nullptr;
    int (*m_createEvents)(void**) = nullptr;
    int (*m_registerEvents)(NvmlDevice, unsigned long long, void*) = nullptr;
    int (*m_waitForEvent)(void*, Event*, unsigned) = nullptr;
};

}  // namespace rankscope::machine

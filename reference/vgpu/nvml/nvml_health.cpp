// SPDX-License-Identifier: Apache-2.0
// The part of NVML that tells how a device is doing. A healthy one runs at its highest clocks, far from its limits; one
// with a planted fault that says `throttle` runs at clocks that explain its slowness.
#include <cmath>
#include <ctime>

#include "reference/vgpu/device/seconds.h"
#include "reference/vgpu/nvml/nvml_handle.h"

using namespace rankscope::vgpu;
using namespace rankscope::vgpu::nvml;

namespace {

// An H100 SXM's, by its data sheet.
constexpr uint32_t kSmMaxMhz = 1980, kMemoryMaxMhz = 2619, kPowerLimitMw = 700'000;
constexpr uint32_t kBusyMw = 560'000, kBusyC = 58, kHotC = 87;
constexpr int kSmClock = 1, kMemoryClock = 2;  // nvmlClockType_t; 0 is the graphics clock, which is that of the SMs
constexpr uint64_t kHwThermal = 0x40;

struct Utilization {
    unsigned gpu, memory;
};

PlantedFactor throttleOf(void* device) {
    return describedCluster().throttle(rankOf(device), static_cast<int>(nodeOf(device)));
}

/// What has been counted since the machine was started, of so many a second. The only time that NVML has is real.
unsigned long long countedAt(double perS) {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const double seconds = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / kNsPerS;
    return static_cast<unsigned long long>(perS * seconds);
}

}  // namespace

extern "C" {

int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* mhz) {
    return answer(device, mhz, type == kMemoryClock ? kMemoryMaxMhz : kSmMaxMhz);
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
    if (const int result = check(device); result != kSuccess) return result;
    if (type == kMemoryClock) return answer(device, mhz, kMemoryMaxMhz);
    return answer(device, mhz, static_cast<unsigned>(std::lround(kSmMaxMhz / throttleOf(device).factor)));
}
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
    if (const int result = check(device); result != kSuccess) return result;
    return answer(device, reasons, throttleOf(device).clocksEvents);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* mw) {
    return answer(device, mw, kPowerLimitMw);
}
/// One that is capped is at its cap; one that is slowed for another reason needs less than a healthy one.
int nvmlDeviceGetPowerUsage(void* device, unsigned* mw) {
    if (const int result = check(device); result != kSuccess) return result;
    constexpr uint64_t kSwPowerCap = 0x4;
    const PlantedFactor throttle = throttleOf(device);
    if (throttle.clocksEvents & kSwPowerCap) return answer(device, mw, kPowerLimitMw);
    return answer(device, mw, static_cast<unsigned>(kBusyMw / throttle.factor));
}
int nvmlDeviceGetTemperature(void* device, int, unsigned* celsius) {
    if (const int result = check(device); result != kSuccess) return result;
    return answer(device, celsius, throttleOf(device).clocksEvents & kHwThermal ? kHotC : kBusyC);
}
int nvmlDeviceGetTotalEccErrors(void* device, int, int, unsigned long long* errors) {
    return answer(device, errors, 0);
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
    if (const int result = check(device); result != kSuccess) return result;
    return rates ? (*rates = {100, 50}, int{kSuccess}) : int{kInvalidArgument};
}
/// All errors of a device are CRC errors of its first link.
int nvmlDeviceGetNvLinkErrorCounter(void* device, uint32_t link, int counter, unsigned long long* errors) {
    constexpr int kCrcFlit = 2;  // NVML_NVLINK_ERROR_DL_CRC_FLIT
    if (check(device) == kSuccess && nvlinksOf(describedCluster()).count == 0) return kNotSupported;
    if (link >= nvlinksOf(describedCluster()).count) return kInvalidArgument;
    const bool hasErrors = check(device) == kSuccess && link == 0 && counter == kCrcFlit;
    return answer(device, errors, hasErrors ? countedAt(describedCluster().linkErrorsPerS(rankOf(device))) : 0);
}

}  // extern "C"

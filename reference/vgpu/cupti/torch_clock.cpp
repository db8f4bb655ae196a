// SPDX-License-Identifier: Apache-2.0
// CUPTI's timestamp callback, and PyTorch's way from what its clock shows to Unix time.
//
// PyTorch's profiler stamps operators by the processor's counter, has CUPTI stamp its records by the same one, and
// takes both to Unix time by a function that it asks of c10 once the recording has ended. A counter cannot be made
// virtual, but that function can: it is defined here, in front of c10's, and reads a stamp as the virtual time that the
// host had reached by then. So operators, calls and kernels of an exported trace lie on one clock, the virtual one.
#include <cupti.h>
#include <dlfcn.h>

#include <cstdint>
#include <functional>

#include "reference/vgpu/device/profiler_clock.h"

namespace c10 {

// As c10/util/ApproximateClock.h has it, under the same name; the function uses no member.
class ApproximateClockToUnixTimeConverter {
  public:
    std::function<int64_t(uint64_t)> makeConverter();
};

}  // namespace c10

using c10::ApproximateClockToUnixTimeConverter;
using rankscope::vgpu::ProfilerClock;

namespace {

constexpr const char* kMakeConverter = "_ZN3c1035ApproximateClockToUnixTimeConverter13makeConverterEv";

/// A member function is called as one that takes the object first; both return the result by a hidden pointer.
using MakeConverter = std::function<int64_t(uint64_t)> (*)(ApproximateClockToUnixTimeConverter*);

/// c10's own, or null where no c10 is loaded.
MakeConverter realMakeConverter() {
    void* c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!c10) return nullptr;
    void* symbol = dlsym(c10, kMakeConverter);
    dlclose(c10);
    return reinterpret_cast<MakeConverter>(symbol);
}

}  // namespace

std::function<int64_t(uint64_t)> ApproximateClockToUnixTimeConverter::makeConverter() {
    if (auto converter = ProfilerClock::instance().converter()) return converter;
    const MakeConverter real = realMakeConverter();
    return real ? real(this)
                : std::function<int64_t(uint64_t)>([](uint64_t stamp) { return static_cast<int64_t>(stamp); });
}

extern "C" {

// Only of a client whose stamps come by here is the clock known to be read as virtual time.
CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc ticks) {
    if (!ticks) return CUPTI_ERROR_INVALID_PARAMETER;
    if (!realMakeConverter()) return CUPTI_ERROR_NOT_SUPPORTED;
    ProfilerClock::instance().use(ticks);
    return CUPTI_SUCCESS;
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// What the virtual GPUs do not model ends the job by name: a success that nothing stands behind would be believed.
#pragma once

namespace rankscope::vgpu {

/// Exit status of a process that called what is not modelled: EX_UNAVAILABLE of sysexits.h.
inline constexpr int kExitNotModelled = 69;

}  // namespace rankscope::vgpu

extern "C" {

/// Says on stderr which function of which library was called and ends the process, with what has been recorded so far
/// delivered to the profiler.
[[noreturn]] void rankscopeVgpuRefuse(const char* function, const char* library);

}  // extern "C"

/// A definition of our own takes the place of these, which are weak.
#define RANKSCOPE_REFUSES(function, library)     \
    [[gnu::weak]] void function(void) {          \
        rankscopeVgpuRefuse(#function, library); \
    }
/// For libraries all of whose functions may say that something is not supported.
#define RANKSCOPE_RETURNS(function, status) \
    [[gnu::weak]] int function(void) {      \
        return status;                      \
    }

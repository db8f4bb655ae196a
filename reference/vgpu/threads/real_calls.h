// SPDX-License-Identifier: Apache-2.0
// The calls of libc behind the ones this folder puts in front of them, and which callers are none of its business.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <cstdint>

namespace rankscope::vgpu::threads {

/// The next definition of `name` behind this library; where libc has several, that of `version`. Ends the process where
/// there is none: nothing could go on without.
void* nextDefinition(const char* name, const char* version);

template <typename Function>
class RealCall {
  public:
    explicit constexpr RealCall(const char* name, const char* version = nullptr) : m_name(name), m_version(version) {}
    template <typename... Arguments>
    auto operator()(Arguments... arguments) {
        Function function = __atomic_load_n(&m_function, __ATOMIC_ACQUIRE);
        if (!function) {
            function = reinterpret_cast<Function>(nextDefinition(m_name, m_version));
            __atomic_store_n(&m_function, function, __ATOMIC_RELEASE);
        }
        return function(arguments...);
    }

  private:
    const char* m_name;
    const char* m_version;
    Function m_function = nullptr;
};

/// Whose call it is, by its return address.
/// profiler: this library or Rankscope's own: its locks and threads are no part of the job. interpreter: Python's own
/// code, whose conditions and mutexes are its interpreter lock. Threads of computing libraries only ever compute.
enum class Caller : uint8_t { program, profiler, interpreter };
Caller callerAt(const void* returnAddress);
bool isComputingLibrary(const void* codeAddress);

}  // namespace rankscope::vgpu::threads

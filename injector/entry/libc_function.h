// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankscope::injector {

/// The function of the C library behind a hook of ours, also in a process without libdl (before glibc 2.34). Null:
/// there is none.
void* findLibcFunction(const char* name) noexcept;

}  // namespace rankscope::injector

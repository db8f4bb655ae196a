// SPDX-License-Identifier: Apache-2.0
// No kernel is executed. Of a framework's own that is known, and what small ones would write is computed on the host;
// of others the program's user is told.
#pragma once

namespace rankscope::vgpu {

struct Kernel;

/// The first launch of `kernel`: in a process with a framework the first rank says on stderr, once for each library,
/// when it is not the framework's.
void tellOfForeignKernel(const Kernel& kernel);
/// The same of a kernel that was compiled at run time, once for all of them.
void tellOfCompiledKernel(const char* name);

}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
// Finds NCCL plugins the way NCCL does (src/plugin/plugin_open.cc).
#pragma once

namespace rankscope::vgpu {

/// The library `variable` names: a path, or NAME for lib<prefix>-NAME.so; STATIC_PLUGIN is the program itself. Null if
/// the variable is unset or "none", or nothing can be opened: NCCL goes on without, too.
void* openPlugin(const char* variable, const char* prefix);

/// What plugins are given to log with.
void ignoreLog(int level, unsigned long flags, const char* file, int line, const char* format, ...);

}  // namespace rankscope::vgpu

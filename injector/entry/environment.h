// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rankscope::injector {

/// Reads the environment block itself: shells bring a getenv of their own that is not ready in a constructor.
const char* readVariable(const char* name) noexcept;

/// Adds or replaces a variable without malloc and without setenv (same reason). At most eight, before main, on the only
/// thread. The texts must live for ever. False: no room.
bool writeVariable(const char* name, const char* value) noexcept;

}  // namespace rankscope::injector

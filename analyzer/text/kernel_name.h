// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace rankscope::text {

/// A kernel's name as a person reads it: demangled, without its return type and parameters, cut to `longest`
/// characters. A name that is not mangled is only cut.
std::string readableKernelName(std::string_view name, size_t longest = 80);

}  // namespace rankscope::text

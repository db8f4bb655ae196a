// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::gui {

/// A kernel's C++ name for where there is little room: without return type, namespaces, parameters and template
/// arguments; of a name that says little, like "cutlass::Kernel2<cutlass_80_simt_sgemm>", the heads of the arguments
/// stay. What is not C++ stays as it is.
std::string shortName(std::string_view name);

/// shortName() of each, but no two different names look the same: where they would, the template arguments that tell
/// them apart are written out.
std::vector<std::string> shortNames(std::span<const std::string> names);

}  // namespace rankscope::gui

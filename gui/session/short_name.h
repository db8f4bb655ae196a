// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rankscope::gui {

/// C++ names of kernels for where there is little room: without return type, namespaces, parameters and template
/// arguments; of a name that says little, like "cutlass::Kernel2<cutlass_80_simt_sgemm>", the heads of the arguments
/// stay. What is not C++ stays as it is. No two different names look the same: where they would, the template arguments
/// that tell them apart are written out.
std::vector<std::string> shortNames(std::span<const std::string> names);

}  // namespace rankscope::gui

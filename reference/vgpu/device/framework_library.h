// SPDX-License-Identifier: Apache-2.0
// The library that knows a framework's operators: built against the framework that the job has loaded, on demand.
#pragma once

#include <string>

namespace rankscope::vgpu {

/// Registered code of a further library may be a framework's: the next call looks again.
void frameworkMayHaveCome();
/// Builds, if need be, and loads the library of a framework that has come into the process. Without one kernels are
/// priced by name and grid, and values are not computed; the first rank says so.
void loadFrameworkLibrary();
/// Where the libraries of the framework lie that has come; empty while there is none.
const std::string& frameworkFolder();
/// True of rank 0, which alone says what holds for all ranks, and of a process that is no rank.
bool isFirstRank();

}  // namespace rankscope::vgpu

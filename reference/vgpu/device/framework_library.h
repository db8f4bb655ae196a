// SPDX-License-Identifier: Apache-2.0
// The library that knows a framework's operators: built against the framework that the job has loaded, on demand.
#pragma once

namespace rankscope::vgpu {

/// Registered code of a further library may be a framework's: the next call looks again.
void frameworkMayHaveCome();
/// Builds, if need be, and loads the library of a framework that has come into the process. Without one kernels are
/// priced by name and grid, and values are not computed; the first rank says so.
void loadFrameworkLibrary();

}  // namespace rankscope::vgpu

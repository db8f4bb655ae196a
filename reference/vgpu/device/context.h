// SPDX-License-Identifier: Apache-2.0
// Contexts: each device has one, its primary context, which the runtime API uses as well.
#pragma once

#include <cuda.h>

namespace rankscope::vgpu {

CUcontext contextOf(int device);
/// The device of a context, -1 if it is none of ours.
int deviceOf(CUcontext context);

}  // namespace rankscope::vgpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/ingest/rank_recording.h"

namespace rankscope::collector {

/// Makes launches of calls whose names tell nothing ("INVALID": the profiler was built before the function came into
/// being, as those of PyTorch 2.11 and 2.12 before __cudaLaunchKernel of CUDA 13) and whose correlation id a kernel
/// carries.
void recogniseLaunches(RankRecording& recording);

}  // namespace rankscope::collector

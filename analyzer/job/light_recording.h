// SPDX-License-Identifier: Apache-2.0
// Recordings without kernels of the program's own (`rankscope run --light`).
#pragma once

namespace rankscope::job {

struct RecordedJob;

/// True of a light recording, of any kind: one that holds no kernels but NCCL's, as its profiler plugin told them.
bool isLight(const RecordedJob& job);

/// True of a light recording in which some rank's kernels are not even told as summaries: only its calls can be judged.
bool isByCalls(const RecordedJob& job);
/// True of the other light recordings.
bool isSummarised(const RecordedJob& job);

}  // namespace rankscope::job

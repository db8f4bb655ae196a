// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collector/ingest/nvtx_pairing.h"
#include "collector/ingest/raw_capture.h"

namespace rankscope::collector {

/// Makes the communicators and NCCL calls of a recording from all that was seen of them:
/// - a hooked call gives op, size, type, communicator, stream;
/// - NCCL's own NVTX range confirms it, or stands in for it where the hook was bypassed;
/// - external correlation (or, without a hook, the launch inside the range) names the kernel; the kernels of a group
///   belong to its calls, stream by stream: one each and in order where there are as many kernels as calls, else
///   shared;
/// - the profiler plugin's k-th event of (communicator, op) gives algorithm, protocol and channels of the k-th call,
///   and where the device's activity was not recorded, its kernel (channel_kernels.h).
/// recording.apiCalls and recording.nvtx must be filled before.
void joinNcclCalls(const RawCapture& raw, const ThreadOfRing& threads, RankRecording& recording);

}  // namespace rankscope::collector

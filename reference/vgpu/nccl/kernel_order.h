// SPDX-License-Identifier: Apache-2.0
// What NCCL asks of the CUDA runtime around each of its kernels.
#pragma once

#include "reference/vgpu/device/device_ops.h"

namespace rankscope::vgpu {

/// Orders a communicator's kernels, on whatever streams they are, as NCCL does (2.28, src/enqueue.cc: ncclLaunchPrepare
/// and ncclLaunchFinish): by way of a stream of its own each waits for the one before. Kernels that are captured have
/// the order of their graph.
class KernelOrder {
  public:
    /// The next kernel, on `stream`, waits for the newest one.
    void begin(LocalProcess& process, LocalStream& stream);
    /// It is launched: the next one will wait for it.
    void end(LocalStream& stream);
    /// All kernels have ended: the stream may order another communicator's.
    void giveBack(LocalProcess& process);

  private:
    LocalStream* m_stream = nullptr;  ///< none before the first kernel
    LocalEvent m_event;
};

/// NCCL asks whether a stream captures.
void askForCapture();
/// NCCL asks for the driver's handle of a kernel.
void askForFunction();

}  // namespace rankscope::vgpu

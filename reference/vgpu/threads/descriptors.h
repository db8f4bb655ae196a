// SPDX-License-Identifier: Apache-2.0
// Waits for what comes from outside the process, or may: files, pipes, sockets, children, memory shared with others.
#pragma once

#include "reference/vgpu/device/local_process.h"

namespace rankscope::vgpu::threads {

/// While it lives, the calling thread is blocked in `call`, in which libc itself lets it sleep.
class BlockedOutside {
  public:
    explicit BlockedOutside(const char* call);
    ~BlockedOutside();
    BlockedOutside(const BlockedOutside&) = delete;
    BlockedOutside& operator=(const BlockedOutside&) = delete;

  private:
    ThreadClock* m_clock;
};

}  // namespace rankscope::vgpu::threads

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rankscope::injector {

/// A write lease on a file (fcntl(2), F_SETLEASE): another process that opens or truncates the file, root's too, waits
/// until we have given the lease back, or for fs.lease-break-time (45 s). It belongs to the open file, thus also to its
/// mappings: descriptors that the job closes do not end it, the last mapping's end does.
class FileLease {
  public:
    enum class State : uint8_t { held, readerWaits, writerWaitsOrNone };

    /// `tid`: the thread that gets the kernel's SIGIO when somebody waits. It has that blocked.
    static bool take(int fd, int32_t tid) noexcept;
    static void giveBack(int fd) noexcept;
    static State state(int fd) noexcept;
};

}  // namespace rankscope::injector

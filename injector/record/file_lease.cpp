// SPDX-License-Identifier: Apache-2.0
#include "injector/record/file_lease.h"

#include <fcntl.h>

namespace rankscope::injector {

bool FileLease::take(int fd, int32_t tid) noexcept {
    // Left alone, SIGIO would go to the process, and end it.
    const f_owner_ex owner{F_OWNER_TID, tid};
    return tid > 0 && ::fcntl(fd, F_SETOWN_EX, &owner) == 0 && ::fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
}

void FileLease::giveBack(int fd) noexcept {
    ::fcntl(fd, F_SETLEASE, F_UNLCK);
}

// F_GETLEASE tells what the lease is to become while somebody waits; F_UNLCK is that of none, too.
FileLease::State FileLease::state(int fd) noexcept {
    switch (::fcntl(fd, F_GETLEASE)) {
        case F_WRLCK:
            return State::held;
        case F_RDLCK:
            return State::readerWaits;
        default:
            return State::writerWaitsOrNone;
    }
}

}  // namespace rankscope::injector

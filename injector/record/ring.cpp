// SPDX-License-Identifier: Apache-2.0
#include "injector/record/ring.h"

#include <cerrno>

#include "injector/record/futex.h"

namespace rankscope::injector {

void Ring::waitWhileMoving() noexcept {
    constexpr int64_t kPauseNs = 50'000;
    const int error = errno;
    std::atomic<uint32_t> nobody{0};
    futexWait(nobody, 0, kPauseNs);
    errno = error;
}

}  // namespace rankscope::injector

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace rankscope::injector {

/// Sleeps until `word` is no longer `expected`, it is woken, or the time is up. May return early.
inline void futexWait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeoutNs) noexcept {
    const timespec timeout{timeoutNs / 1'000'000'000, timeoutNs % 1'000'000'000};
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}

inline void futexWake(std::atomic<uint32_t>& word) noexcept {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

}  // namespace rankscope::injector
